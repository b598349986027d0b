// SPDX-License-Identifier: Apache-2.0

// Lines to a descriptor, independent of its reader: a pipe that nobody reads blocks no thread.
//
// The calling thread writes its line, at once and in order. While the reader takes nothing, lines
// are kept, and beyond 64 KiB dropped and counted; they go out before the next line, or when the
// process ends. Only the first line that finds the reader stopped waits for it, and only for a
// short time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <pccl/deadline.h>
#include <pccl/export.h>
#include "csrc/base/ids.h"

namespace pccl {

/// Line writer. One thread at a time.
class PCCL_API LineWriter {
   public:
    static constexpr std::size_t kMostKept = 64 * kKiB;

    /// Writes to `fd`, which the caller owns and may let refer to another file at any time.
    explicit LineWriter(int fd) : fd_(fd) {}

    /// Writes a line, which includes its newline.
    void write(std::string_view line);
    /// Writes the kept lines; waits at most `timeout` for the reader.
    void flush(Duration timeout);
    /// Drops the kept lines: another process writes them.
    void forget();

   private:
    [[nodiscard]] bool has_room_for(std::string_view line) const {
        return kept_.empty() || kept_.size() + line.size() <= kMostKept;
    }

    const int fd_;
    std::string kept_;
    std::uint64_t lost_ = 0;  // lines dropped since the last kept one
    bool is_stalled_ = false;
};

}  // namespace pccl
