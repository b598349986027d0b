// SPDX-License-Identifier: Apache-2.0

// State of the thread blocks of a plan during its execution.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "csrc/capsule/mscclpp/plan.h"

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

/// Operation on which others depend, with the clocks of its thread block at that time.
struct ClockedOperation {
    At at{};
    std::size_t block = 0;  // counted over all GPUs
    std::size_t order = 0;  // among all operations
    VectorClock known;
    VectorClock carried;
};
using MomentPtr = std::shared_ptr<const ClockedOperation>;

/// Chunks that a GPU wrote to another GPU.
struct Written {
    Chunks src{};
    Chunks dst{};
    MomentPtr at{};
};

/// Writes of a thread block to a GPU, without packets, in program order.
struct WrittenTo {
    struct Received {
        std::size_t op = 0;  // operation that wrote it
        MomentPtr at{};
    };
    std::deque<Written> unsignalled{};
    std::deque<Received> received{};
};

/// Packet in its place.
struct Packet {
    Written written{};
    bool is_taken = false;  // received by the first thread block that reads it
    MomentPtr read{};       // operation that received it
};

/// Last operation that wrote a chunk.
struct LastWrite {
    At at{};
    std::size_t block = 0;  // counted over all GPUs
    std::size_t ops = 0;    // operations of the thread block up to it; 0: none
};

/// Arrivals of thread blocks at one use of a barrier.
struct BarrierArrivals {
    std::vector<MomentPtr> come{};
    MomentPtr met{};
    [[nodiscard]] bool is_full(const PlanOperation& barrier) const {
        return std::cmp_greater_equal(come.size(), barrier.blocks_to_meet);
    }
};

/// Thread block with its clocks.
struct ClockedBlock {
    At next{};
    VectorClock known;
    VectorClock carried;
    std::shared_ptr<BarrierArrivals> arrivals{};  // barrier at which it has arrived
    // By thread block that writes to this GPU: the number of receipts for which it has waited.
    std::map<std::size_t, std::size_t> seen{};
};

}  // namespace pccl::capsule::mscclpp
