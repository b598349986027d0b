// SPDX-License-Identifier: Apache-2.0

// Dependencies of each operation of a plan, and the messages with which a schedule reproduces it.
//
// In a plan, a GPU writes into the memory of another and signals, or signals that it is ready and
// lets the other read. Packets carry a flag each, for which their readers wait. In a schedule,
// messages have a sender and a receiver. So the plan is executed, one operation after the other, as
// its thread blocks would run. The first thread block ordered after a write to its GPU receives the
// data there; the first reader of a packet receives it; data that is read from another GPU's memory
// is sent at that GPU's last signal.
//
// Each thread block has two vector clocks. The first counts operations ordered before by signals,
// flags, barriers and semaphores. The second counts operations ordered before by messages and waits
// of the schedule. If the first is ahead of the second for thread blocks of the same GPU, the
// schedule must wait: a signal without a write has no message, but the order of the GPU's thread
// blocks may depend on it. If another thread block than the signalling one wrote data, unordered
// with the signal, the writing thread block sends the data.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/capsule/mscclpp/plan.h"

namespace pccl::capsule::mscclpp {

/// Message: the chunks of `src` go to `dst` on another GPU.
struct Delivery {
    Chunks src{};
    Chunks dst{};
    At sent{};
    At received{};
    bool is_read = false;  // by the receiver, in the memory of the sender
    ChannelId channel = 0;
};

/// Wait for the first `ops` operations of another thread block of the same GPU.
struct Wait {
    std::size_t block = 0;
    std::size_t ops = 0;
};

struct RunResult {
    std::vector<Delivery> deliveries;       // in the order of their receipt
    std::map<At, std::vector<Wait>> waits;  // before an operation
};

}  // namespace pccl::capsule::mscclpp
