// SPDX-License-Identifier: Apache-2.0

// Launch plan of all_to_all. The kernels are in all_to_all.cu.
#pragma once

#include "csrc/kernels/plan.h"

namespace pccl::kernels {

/// Returns the plan; `bytes` is the size of the block from each rank to each other.
[[nodiscard]] Plan plan_all_to_all(std::size_t bytes, const Gpus& gpus);

}  // namespace pccl::kernels
