// broadcast: how it is launched. The kernels are in broadcast.cu.
#pragma once

#include "csrc/kernels/plan.h"

namespace pccl::kernels {

/// `bytes` of the tensor. By LL, the root sends it n - 1 times. Directly, each of the others
/// pulls a part and pushes it to the rest, so that no link carries more than the tensor.
[[nodiscard]] Plan plan_broadcast(std::size_t bytes, const Gpus& gpus);

}  // namespace pccl::kernels
