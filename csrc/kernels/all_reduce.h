// all_reduce: how it is launched. The kernels are in all_reduce.cu.
#pragma once

#include <cstddef>

#include "csrc/kernels/plan.h"

namespace pccl::kernels {

/// `bytes` of the tensor.
///
/// By LL, every rank sends everything and reduces it: one hop, n - 1 times the tensor leaves each
/// GPU, twice over. Otherwise each reduces a part: 2 (n - 1) / n times the tensor.
[[nodiscard]] Plan plan_all_reduce(std::size_t bytes, const Gpus& gpus);
/// Whether a reduce_scatter and an all_gather after it, with plans of their own, take less time.
[[nodiscard]] bool is_faster_in_two(std::size_t bytes, const Gpus& gpus);

/// Of two ranks, the one that gets the result reduces all of a tensor of so many bytes. On all
/// architectures: kernels are chosen by it, too.
inline constexpr std::size_t kLeastForRootAlone = std::size_t{16} << 20;

/// As plan_all_reduce(), with one rank that gets the result. The others reduce a part each, so that
/// no more than the tensor comes to the root.
[[nodiscard]] Plan plan_reduce(std::size_t bytes, const Gpus& gpus);

}  // namespace pccl::kernels
