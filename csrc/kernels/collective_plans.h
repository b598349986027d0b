// SPDX-License-Identifier: Apache-2.0

// Launch plans of the collectives. The kernels of each are in its .cu file.
#pragma once

#include <cstddef>

#include "csrc/kernels/plan.h"

namespace pccl::kernels {

/// Returns the plan of an all_reduce; `bytes` is the size of the tensor.
///
/// By LL, every rank sends its whole tensor to all others and reduces all of them: one hop; n - 1
/// times the tensor leaves each GPU, and LL doubles it. Otherwise each rank reduces a part: 2 (n -
/// 1) / n times the tensor leaves each GPU.
[[nodiscard]] LaunchPlan plan_all_reduce(std::size_t bytes, const Gpus& gpus);
/// Returns whether a reduce_scatter followed by an all_gather, with plans of their own, is faster.
[[nodiscard]] bool is_faster_in_two(std::size_t bytes, const Gpus& gpus);

/// Least tensor size in bytes from which the root of a pair reduces the whole tensor alone. It
/// applies to all architectures, since kernels are chosen by it, too.
inline constexpr std::size_t kLeastForRootAlone = std::size_t{16} << 20;

/// Returns the plan for a reduction to one root rank. The other ranks reduce a part each, so that
/// the root receives no more bytes than the tensor has.
[[nodiscard]] LaunchPlan plan_reduce(std::size_t bytes, const Gpus& gpus);

/// Returns the plan of an all_gather; `bytes` is the size of the block that each rank contributes.
[[nodiscard]] LaunchPlan plan_all_gather(std::size_t bytes, const Gpus& gpus);

/// Returns the plan of an all_to_all; `bytes` is the size of the block from each rank to each
/// other.
[[nodiscard]] LaunchPlan plan_all_to_all(std::size_t bytes, const Gpus& gpus);

/// Returns the plan of a broadcast; `bytes` is the size of the tensor. By LL, the root sends it n -
/// 1 times. With kDirect, each of the other ranks pulls a part and pushes it to the rest, so that
/// no link carries more than the tensor.
[[nodiscard]] LaunchPlan plan_broadcast(std::size_t bytes, const Gpus& gpus);

/// Returns the plan of a reduce_scatter; `bytes` is the size of the block that each rank gets.
[[nodiscard]] LaunchPlan plan_reduce_scatter(std::size_t bytes, const Gpus& gpus);

}  // namespace pccl::kernels
