// Plans of MSCCL++ as programs of thread blocks that send and receive.
//
// In a plan, a GPU writes into the memory of another and signals that it has, or says that it is
// ready and lets the other read; in a schedule, messages have a sender and a receiver. So what is
// written between two signals to a GPU becomes messages that arrive where that GPU waits for the
// signal; what it reads after a wait becomes messages that are sent where the other signals;
// packets arrive where they are read first. Signals that tell of nothing else only keep others from
// overwriting what is still read, and messages have that by themselves.
#pragma once

#include <string>

#include "csrc/capsule/msccl/algo.h"
#include "csrc/capsule/mscclpp/plan.h"

namespace pccl::capsule::mscclpp {

/// kInvalidArgument or kUnsupported with the operation where something is written or read of which
/// no signal tells. `file` stands for the plan in messages.
[[nodiscard]] Result<msccl::Algo> two_sided(const Plan& plan, const std::string& file);

}  // namespace pccl::capsule::mscclpp
