// SPDX-License-Identifier: Apache-2.0

// Translation of MSCCL++ plans to thread blocks that send and receive.
#pragma once

#include "csrc/capsule/msccl/algo.h"
#include "csrc/capsule/mscclpp/execution.h"
#include "csrc/capsule/mscclpp/plan.h"

namespace pccl::capsule::mscclpp {

/// Makes a lane of each thread block: for each operation its waits, receives, local work and sends.
/// `plan` must outlive the program, which uses its places.
[[nodiscard]] msccl::Algo two_sided(const MscclppPlan& plan, const RunResult& execution);

}  // namespace pccl::capsule::mscclpp
