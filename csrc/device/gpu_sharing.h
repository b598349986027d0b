// SPDX-License-Identifier: Apache-2.0

// Rules for ranks that share a GPU. Their kernels run side by side only under MPS. Without it each
// kernel waits for the time slice of its process, and so does each flag that a peer's kernel sets.
// Side by side, all blocks of all ranks must fit on the GPU at once, since each waits for its peers
// while it is resident.
#pragma once

#include <span>
#include <vector>

#include <pccl/status.h>
#include "csrc/device/device_rendezvous.h"
#include "csrc/sys/cuda/driver.h"

namespace pccl::device {

/// A rank's GPU, and how it is shared.
struct GpuPlacement {
    sys::cuda::GpuId gpu{};
    bool has_mps = false;
    bool allows_time_slicing = false;  // the rank accepts kernels under time-slicing
    bool allows_peer_access = true;    // the rank's settings permit it
    int multiprocessors = 0;

    bool operator==(const GpuPlacement&) const = default;
};

/// Returns ok, or kUnsupported where two of `placements`, indexed by rank, share one GPU by
/// time-slicing. The message names the two ranks, the cost and the remedy. One rank that allows
/// time-slicing suffices.
[[nodiscard]] Status check_placements(std::span<const GpuPlacement> placements);

/// Returns the number of blocks that a launch of one rank may have so that the launches of all
/// ranks on its GPU are resident at once, with a multiprocessor for each block. The range is 1 to
/// abi::kMostBlocks; the result is the same for all ranks.
[[nodiscard]] int resident_blocks(std::span<const GpuPlacement> placements);

/// Checks the GPUs of the ranks that meet, where `own` is this rank's, and returns them by rank.
[[nodiscard]] Result<std::vector<GpuPlacement>> agree_on_placements(
    const DeviceRendezvous& rendezvous, const GpuPlacement& own);

}  // namespace pccl::device
