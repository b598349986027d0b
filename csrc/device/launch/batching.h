// Collectives that are asked for together, in one launch.
#pragma once

#include <cstddef>
#include <span>

#include "csrc/collective/collective.h"
#include "csrc/device/launch/lowering.h"
#include "csrc/kernels/launch.h"

namespace pccl::device {

/// How many of `collectives`, from the first on, go into one launch: those alike in kind, type and
/// operator that go by LL, while there is room. At least 1; the same on all ranks.
[[nodiscard]] PCCL_API std::size_t batch_length(std::span<const Collective> collectives,
                                                const Preferences& preferences,
                                                const kernels::Gpus& gpus);

/// The launch of as many, but for its team. kInvalidArgument, kUnsupported.
[[nodiscard]] PCCL_API Result<kernels::Batch> make_batch(std::span<const Collective> collectives,
                                                         int most_blocks, Rank rank, int ranks);

/// How many of `collectives`, from the first on, go into one large batch: those alike in kind, type
/// and operator, none so large that it is staggered or done by copy engines. At least 1; the same
/// on all ranks.
[[nodiscard]] PCCL_API std::size_t large_batch_length(std::span<const Collective> collectives,
                                                      const Preferences& preferences,
                                                      const kernels::Gpus& gpus);

/// The launch of as many, but for its team and peer pointers; part i is collective i.
/// kInvalidArgument, kUnsupported.
[[nodiscard]] PCCL_API Result<kernels::LargeBatch> make_large_batch(
    std::span<const Collective> collectives, int most_blocks, Rank rank, int ranks);

}  // namespace pccl::device
