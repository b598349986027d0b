// SPDX-License-Identifier: Apache-2.0
#include "csrc/runtime/flight/usage_history.h"

#include <algorithm>
#include <utility>

namespace pccl::runtime {

using std::chrono::seconds;

seconds UsageHistory::begin_of(std::chrono::milliseconds since_1970) {
    return std::chrono::floor<seconds>(since_1970) / kShortest * kShortest;
}

void UsageHistory::add(seconds begin, UsageSnapshot usage) {
    // A clock that was set back gives no second window of the same time.
    if (!windows_.empty() && begin < windows_.back().end()) {
        windows_.back().usage += usage;
        limit(windows_.back().usage, kMostEntries);
        return;
    }
    limit(usage, kMostEntries);
    windows_.push_back({.begin = begin, .length = kShortest, .usage = std::move(usage)});
    for (seconds length = kShortest; length <= windows_.front().length; length *= 2)
        join_oldest_of(length);
    if (windows_.size() > kMost) windows_.pop_front();
}

/// Makes one window of the oldest ones of a length, if there are too many.
void UsageHistory::join_oldest_of(seconds length) {
    const auto is_of_length = [&](const UsageWindow& window) { return window.length == length; };
    if (std::cmp_less_equal(std::ranges::count_if(windows_, is_of_length), kOfOneLength)) return;
    const auto first = std::ranges::find_if(windows_, is_of_length);
    UsageWindow joined = *first;
    joined.length = 2 * length;
    joined.begin -= joined.begin % joined.length;
    // The second half may be missing, and then no call ended in it.
    const auto second = std::next(first);
    const bool has_second = second->end() <= joined.end();
    if (has_second) joined.usage += second->usage;
    limit(joined.usage, kMostEntries);
    *first = std::move(joined);
    if (has_second) windows_.erase(second);
}

}  // namespace pccl::runtime
