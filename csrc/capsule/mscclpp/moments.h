// What thread blocks of a running plan did and know.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "csrc/capsule/mscclpp/plan.h"
#include "csrc/capsule/mscclpp/vector_clock.h"

namespace pccl::capsule::mscclpp {

/// An operation that others wait for, and what its thread block knew then.
struct Moment {
    At at{};
    std::size_t block = 0;  // counted over all GPUs
    std::size_t order = 0;  // among all operations
    VectorClock known;
    VectorClock carried;
};
using MomentPtr = std::shared_ptr<const Moment>;

/// Chunks that a GPU wrote to another.
struct Written {
    Chunks src{};
    Chunks dst{};
    MomentPtr at{};
};

/// What a thread block wrote to a GPU, without packets, in its order.
struct WrittenTo {
    struct Received {
        std::size_t op = 0;  // that wrote it
        MomentPtr at{};
    };
    std::deque<Written> untold{};
    std::deque<Received> received{};
};

/// A packet in its place.
struct Packet {
    Written written{};
    bool is_taken = false;  // by the first thread block that reads it
    MomentPtr read{};       // when that had it
};

/// The operation that wrote a chunk last.
struct Writer {
    At at{};
    std::size_t block = 0;  // counted over all GPUs
    std::size_t ops = 0;    // of the thread block, until then; 0: nobody
};

/// Thread blocks that meet at a barrier, once.
struct BarrierArrivals {
    std::vector<MomentPtr> come{};
    MomentPtr met{};
    [[nodiscard]] bool is_full(const Operation& barrier) const {
        return std::cmp_greater_equal(come.size(), barrier.blocks_to_meet);
    }
};

/// A thread block, and what it knows.
struct Block {
    At next{};
    VectorClock known;
    VectorClock carried;
    std::shared_ptr<BarrierArrivals> arrivals{};  // that it has come to
    // By thread block that writes to this GPU, how much of what was received it has waited for.
    std::map<std::size_t, std::size_t> seen{};
};

}  // namespace pccl::capsule::mscclpp
