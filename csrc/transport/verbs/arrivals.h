// SPDX-License-Identifier: Apache-2.0

// Parts of a stream that have arrived, in any order and possibly more than once.
#pragma once

#include <cstdint>
#include <map>

namespace pccl::transport::verbs {

class Arrivals {
   public:
    /// Returns the end of the part without gaps from the beginning of the stream on.
    [[nodiscard]] std::uint64_t end() const { return end_; }
    /// Adds the part [begin, end).
    void add(std::uint64_t begin, std::uint64_t end) {
        if (begin <= end_) {
            if (end > end_) end_ = end;
            join_later();
        } else if (std::uint64_t& known = later_[begin]; end > known) {
            known = end;
        }
    }

   private:
    void join_later() {
        while (!later_.empty() && later_.begin()->first <= end_) {
            if (later_.begin()->second > end_) end_ = later_.begin()->second;
            later_.erase(later_.begin());
        }
    }

    std::uint64_t end_ = 0;
    std::map<std::uint64_t, std::uint64_t> later_;  // behind a gap: end by begin
};

}  // namespace pccl::transport::verbs
