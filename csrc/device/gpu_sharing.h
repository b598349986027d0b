// Ranks that share a GPU. Their kernels run side by side under MPS alone: without it each waits for
// the process's time slice, and so does each flag that a peer's kernel is to set. Side by side, all
// blocks of all of them must fit on the GPU at once: each waits for its peers while it is resident.
#pragma once

#include <span>

#include "csrc/base/status.h"
#include "csrc/device/device_rendezvous.h"
#include "csrc/sys/cuda/driver.h"

namespace pccl::device {

/// Where a rank's GPU is, and how it is shared.
struct GpuPlacement {
    sys::cuda::GpuId gpu{};
    bool has_mps = false;
    bool allows_time_slicing = false;  // it wants kernels also where they take turns
    int multiprocessors = 0;

    bool operator==(const GpuPlacement&) const = default;
};

/// ok, or kUnsupported where two of `placements`, by rank, have one GPU and take turns there; it
/// names the two, what that costs and what to do. One that wants this nevertheless suffices.
[[nodiscard]] Status check_placements(std::span<const GpuPlacement> placements);

/// Returns how many blocks a launch of one rank may have, so that the launches of all ranks with
/// its GPU are resident at once: a multiprocessor each. 1 to abi::kMostBlocks, the same for all
/// ranks.
[[nodiscard]] int resident_blocks(std::span<const GpuPlacement> placements);

/// Checks the GPUs of the ranks that meet, of which this one has `own`, and returns
/// resident_blocks() of them; on all ranks alike.
[[nodiscard]] Result<int> agree_on_placements(const DeviceRendezvous& rendezvous,
                                              const GpuPlacement& own);

}  // namespace pccl::device
