// What each operation of a plan waits for, and which messages it takes to do what the plan does.
//
// In a plan, a GPU writes into the memory of another and signals that it has, or says that it is
// ready and lets the other read; packets carry a flag each, for which their readers wait. In a
// schedule, messages have a sender and a receiver. So the plan is run, one operation after the
// other, as its thread blocks would run it: whoever first gets to know that something was written
// to its GPU receives it there, whoever reads a packet first receives it, and what is read in the
// memory of another GPU is sent where that GPU signalled last.
//
// Two vector clocks are kept of each thread block: what it knows to be done by signals, flags,
// barriers and semaphores, and what it knows by messages and by waits of the schedule. Where the
// first is ahead of the second, for thread blocks of its own GPU, the schedule has to wait: signals
// that tell of nothing written have no messages, and order of the thread blocks of a GPU may hang
// on them. What another thread block than the one that signalled wrote, of which that did not know,
// is sent by the one that wrote it.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "csrc/capsule/mscclpp/plan.h"

namespace pccl::capsule::mscclpp {

/// A message: what `src` names goes to `dst`, of another GPU.
struct Delivery {
    Chunks src{};
    Chunks dst{};
    At sent{};
    At received{};
    bool is_read = false;  // by the receiver, in the memory of the sender
    ChannelId channel = 0;
};

/// For the first `ops` operations of another thread block of the same GPU.
struct Wait {
    std::size_t block = 0;
    std::size_t ops = 0;
};

struct Execution {
    std::vector<Delivery> deliveries;       // in the order of their receipts
    std::map<At, std::vector<Wait>> waits;  // before an operation
};

}  // namespace pccl::capsule::mscclpp
