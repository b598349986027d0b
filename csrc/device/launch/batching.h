// SPDX-License-Identifier: Apache-2.0

// Batches: several collectives of one call in one launch.
#pragma once

#include <cstddef>
#include <span>

#include "csrc/collective/collective.h"
#include "csrc/device/launch/lowering.h"
#include "csrc/kernels/launch.h"

namespace pccl::device {

/// Returns the length of the prefix of `collectives` that fits into one launch: collectives of one
/// kind, type and operator that LL carries, while there is room. At least 1; the same on all ranks.
[[nodiscard]] PCCL_API std::size_t batch_length(std::span<const Collective> collectives,
                                                const Preferences& preferences,
                                                const kernels::Gpus& gpus);

/// Returns the launch of all `collectives`; its team is not set. kInvalidArgument, kUnsupported.
[[nodiscard]] PCCL_API Result<kernels::BatchLaunch> make_batch(
    std::span<const Collective> collectives, int most_blocks, Rank rank, int ranks);

/// Returns the length of the prefix of `collectives` that fits into one large batch: collectives of
/// one kind, type and operator, none large enough for staggered pushes or copy engines. At least 1;
/// the same on all ranks.
[[nodiscard]] PCCL_API std::size_t large_batch_length(std::span<const Collective> collectives,
                                                      const Preferences& preferences,
                                                      const kernels::Gpus& gpus);

/// Returns the launch of all `collectives`; its team and peer pointers are not set. Part i is
/// collective i. kInvalidArgument, kUnsupported.
[[nodiscard]] PCCL_API Result<kernels::LargeBatch> make_large_batch(
    std::span<const Collective> collectives, int most_blocks, Rank rank, int ranks);

}  // namespace pccl::device
