// all_gather: how it is launched. The kernels are in all_gather.cu.
#pragma once

#include "csrc/kernels/plan.h"

namespace pccl::kernels {

/// `bytes` of the block that each rank gives.
[[nodiscard]] Plan plan_all_gather(std::size_t bytes, const Gpus& gpus);

}  // namespace pccl::kernels
