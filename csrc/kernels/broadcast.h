// SPDX-License-Identifier: Apache-2.0

// Launch plan of broadcast. The kernels are in broadcast.cu.
#pragma once

#include "csrc/kernels/plan.h"

namespace pccl::kernels {

/// Returns the plan; `bytes` is the size of the tensor. By LL, the root sends it n - 1 times. With
/// kDirect, each of the other ranks pulls a part and pushes it to the rest, so that no link carries
/// more than the tensor.
[[nodiscard]] Plan plan_broadcast(std::size_t bytes, const Gpus& gpus);

}  // namespace pccl::kernels
