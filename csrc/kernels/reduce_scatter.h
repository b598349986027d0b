// SPDX-License-Identifier: Apache-2.0

// Launch plan of reduce_scatter. The kernels are in reduce_scatter.cu.
#pragma once

#include "csrc/kernels/plan.h"

namespace pccl::kernels {

/// Returns the plan; `bytes` is the size of the block that each rank gets.
[[nodiscard]] Plan plan_reduce_scatter(std::size_t bytes, const Gpus& gpus);

}  // namespace pccl::kernels
