// SPDX-License-Identifier: Apache-2.0

// History of a rank's counters in a bounded number of windows of time: recent ones are short, older
// ones are longer.
//
// A window is as long as a power of two times kShortest, and begins at a multiple of its length
// since 1970. So windows of all ranks have the same bounds, and of two windows that overlap one
// contains the other.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>

#include <pccl/export.h>
#include "csrc/runtime/flight/usage_snapshot.h"

namespace pccl::runtime {

struct UsageWindow {
    std::chrono::seconds begin{};  // since 1970
    std::chrono::seconds length{};
    UsageSnapshot usage{};  // the counts within it

    [[nodiscard]] std::chrono::seconds end() const { return begin + length; }
};

class PCCL_API UsageHistory {
   public:
    static constexpr std::chrono::seconds kShortest{2};
    static constexpr std::size_t kOfOneLength = 8;   // windows, before the two oldest become one
    static constexpr std::size_t kMost = 128;        // windows; then the oldest is dropped
    static constexpr std::size_t kMostEntries = 16;  // waits and paths of a window

    /// Returns the begin of the shortest window that contains a time.
    [[nodiscard]] static std::chrono::seconds begin_of(std::chrono::milliseconds since_1970);

    /// Adds the counts of the shortest window at `begin`. It becomes a part of the last
    /// window if that does not end before.
    void add(std::chrono::seconds begin, UsageSnapshot usage);
    [[nodiscard]] const std::deque<UsageWindow>& windows() const { return windows_; }

   private:
    void join_oldest_of(std::chrono::seconds length);

    std::deque<UsageWindow> windows_;  // oldest first
};

}  // namespace pccl::runtime
