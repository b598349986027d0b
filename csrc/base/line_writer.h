// Lines to a descriptor, whatever its reader does: a pipe that nobody reads holds no thread up.
//
// A line is written by who writes it, at once and in order. While the reader takes nothing, lines
// are kept, and beyond 64 KiB dropped and counted; they go out ahead of the next line, or when the
// process ends. Only the first line that finds the reader stopped waits for it, and not for long.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "csrc/base/clock.h"
#include "csrc/base/export.h"
#include "csrc/base/ids.h"

namespace pccl {

/// One thread at a time.
class PCCL_API LineWriter {
   public:
    static constexpr std::size_t kMostKept = 64 * kKiB;

    /// `fd` belongs to the caller, who may let it name another file at any time.
    explicit LineWriter(int fd) : fd_(fd) {}

    /// With its newline.
    void write(std::string_view line);
    /// Gives the reader so long to take what is kept.
    void flush(Duration timeout);
    /// Drops what is kept: it is for another process to write.
    void forget();

   private:
    [[nodiscard]] bool has_room_for(std::string_view line) const {
        return kept_.empty() || kept_.size() + line.size() <= kMostKept;
    }

    const int fd_;
    std::string kept_;
    std::uint64_t lost_ = 0;  // lines, since the last that was kept
    bool is_stalled_ = false;
};

}  // namespace pccl
