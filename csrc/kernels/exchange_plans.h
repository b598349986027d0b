// SPDX-License-Identifier: Apache-2.0

// Launch plans of the collectives in which every pair of ranks exchanges one block. The kernels of
// each are in its .cu file.
#pragma once

#include "csrc/kernels/plan.h"

namespace pccl::kernels {

/// Returns the plan of an all_gather; `bytes` is the size of the block that each rank contributes.
[[nodiscard]] Plan plan_all_gather(std::size_t bytes, const Gpus& gpus);

/// Returns the plan of an all_to_all; `bytes` is the size of the block from each rank to each
/// other.
[[nodiscard]] Plan plan_all_to_all(std::size_t bytes, const Gpus& gpus);

/// Returns the plan of a broadcast; `bytes` is the size of the tensor. By LL, the root sends it n -
/// 1 times. With kDirect, each of the other ranks pulls a part and pushes it to the rest, so that
/// no link carries more than the tensor.
[[nodiscard]] Plan plan_broadcast(std::size_t bytes, const Gpus& gpus);

/// Returns the plan of a reduce_scatter; `bytes` is the size of the block that each rank gets.
[[nodiscard]] Plan plan_reduce_scatter(std::size_t bytes, const Gpus& gpus);

}  // namespace pccl::kernels
