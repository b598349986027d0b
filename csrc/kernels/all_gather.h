// SPDX-License-Identifier: Apache-2.0

// Launch plan of all_gather. The kernels are in all_gather.cu.
#pragma once

#include "csrc/kernels/plan.h"

namespace pccl::kernels {

/// Returns the plan; `bytes` is the size of the block that each rank contributes.
[[nodiscard]] Plan plan_all_gather(std::size_t bytes, const Gpus& gpus);

}  // namespace pccl::kernels
