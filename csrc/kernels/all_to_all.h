// all_to_all: how it is launched. The kernels are in all_to_all.cu.
#pragma once

#include "csrc/kernels/plan.h"

namespace pccl::kernels {

/// `bytes` of the block that each rank gives to each.
[[nodiscard]] Plan plan_all_to_all(std::size_t bytes, const Gpus& gpus);

}  // namespace pccl::kernels
