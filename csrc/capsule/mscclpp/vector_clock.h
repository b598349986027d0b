// SPDX-License-Identifier: Apache-2.0

// Vector clock: the number of operations of each thread block that are ordered before (C. J. Fidge,
// "Timestamps in message-passing systems that preserve the partial ordering", 1988).
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace pccl::capsule::mscclpp {

class VectorClock {
   public:
    explicit VectorClock(std::size_t blocks) : done_(blocks, 0) {}

    [[nodiscard]] std::size_t operator[](std::size_t block) const { return done_[block]; }
    void reach(std::size_t block, std::size_t operations) {
        done_[block] = std::max(done_[block], static_cast<unsigned>(operations));
    }
    void merge(const VectorClock& other) {
        for (std::size_t i = 0; i < done_.size(); ++i)
            done_[i] = std::max(done_[i], other.done_[i]);
    }

   private:
    std::vector<unsigned> done_;
};

}  // namespace pccl::capsule::mscclpp
