// Plans of MSCCL++ as programs of thread blocks that send and receive.
#pragma once

#include "csrc/capsule/msccl/algo.h"
#include "csrc/capsule/mscclpp/execution.h"
#include "csrc/capsule/mscclpp/plan.h"

namespace pccl::capsule::mscclpp {

/// Makes a lane of each thread block: what it waits for, what it receives, what it does, and what
/// it sends. `plan` must outlive the program, whose places are those of its operations.
[[nodiscard]] msccl::Algo two_sided(const Plan& plan, const Execution& execution);

}  // namespace pccl::capsule::mscclpp
