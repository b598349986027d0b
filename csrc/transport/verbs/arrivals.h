// SPDX-License-Identifier: Apache-2.0

// Parts of a stream that have arrived, in any order and possibly more than once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace pccl::transport::verbs {

class Arrivals {
   public:
    /// Returns the end of the part without gaps from the beginning of the stream on.
    [[nodiscard]] std::uint64_t end() const { return end_; }
    /// Returns whether the part [begin, end) has arrived.
    [[nodiscard]] bool has(std::uint64_t begin, std::uint64_t end) const {
        if (end <= end_) return true;
        const auto next = later_.upper_bound(begin);
        return next != later_.begin() && std::prev(next)->second >= end;
    }
    /// Adds the part [begin, end).
    void add(std::uint64_t begin, std::uint64_t end) {
        auto next = later_.upper_bound(begin);
        if (next != later_.begin() && std::prev(next)->second >= begin) {
            --next;
            begin = next->first;
            end = std::max(end, next->second);
            next = later_.erase(next);
        }
        while (next != later_.end() && next->first <= end) {
            end = std::max(end, next->second);
            next = later_.erase(next);
        }
        if (begin > end_)
            later_.emplace_hint(next, begin, end);
        else
            end_ = std::max(end_, end);
    }

   private:
    std::uint64_t end_ = 0;
    std::map<std::uint64_t, std::uint64_t> later_;  // behind a gap: end by begin, without overlaps
};

}  // namespace pccl::transport::verbs
