// SPDX-License-Identifier: Apache-2.0

// Heaps of a group, in the memory that all its GPUs reach.
#include <algorithm>
#include <utility>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/device/device_group.h"
#include "csrc/device/gpu_path.h"

namespace pccl::device {
namespace {

using kernels::GpuPath;
using transport::nvlink::MemoryKind;
using transport::nvlink::SymmetricHeap;

}  // namespace

Status DeviceGroupImpl::make_heaps(const DeviceRendezvous& rendezvous,
                                   std::span<const GpuPlacement> placements) {
    const Deadline deadline = rendezvous.deadline();
    if (options_.size == 1) {
        PCCL_TRY(make_heap_of(MemoryKind::kGpu, deadline));
        return heap_->map();
    }
    UsablePaths usable = paths_by(options_.peer_access, options_.host_kernels);
    if (std::ranges::all_of(placements, &GpuPlacement::allows_peer_access)) {
        PCCL_TRY(make_heap_of(MemoryKind::kGpu, deadline));
        usable.peers = map_peers(placements);
    }
    if (usable.host.is_ok()) usable.host = check_host_memory(driver_);
    PCCL_ASSIGN_OR_RETURN(ChosenPath chosen, agree_on_path(rendezvous, usable));
    gpus_.path = chosen.path;
    why_through_host_ = std::move(chosen.why);
    return gpus_.path == GpuPath::kHost ? make_host_heaps(deadline) : Status::ok();
}

Status DeviceGroupImpl::make_heap_of(MemoryKind kind, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(heap_, SymmetricHeap::create({.driver = driver_,
                                                        .device = options_.device,
                                                        .bytes = sizeof(abi::Heap),
                                                        .kind = kind,
                                                        .maps_later = true},
                                                       *sockets_, deadline));
    return Status::ok();
}

Status DeviceGroupImpl::map_peers(std::span<const GpuPlacement> placements) {
    PCCL_TRY(check_reach(placements));
    return heap_->map();
}

Status DeviceGroupImpl::make_host_heaps(Deadline deadline) {
    PCCL_TRY(make_heap_of(MemoryKind::kHost, deadline));
    PCCL_TRY(heap_->map());
    PCCL_ASSIGN_OR_RETURN(states_, SymmetricHeap::create({.driver = driver_,
                                                          .device = options_.device,
                                                          .bytes = abi::state_bytes(options_.size),
                                                          .kind = MemoryKind::kHost,
                                                          .maps_later = true},
                                                         *sockets_, deadline));
    return Status::ok();
}

/// Checks the GPUs of peers that this process sees; mapping a heap checks the others.
Status DeviceGroupImpl::check_reach(std::span<const GpuPlacement> placements) const {
    PCCL_ASSIGN_OR_RETURN(const auto visible, driver_.bus_ids());
    for (int other = 0; other < static_cast<int>(visible.size()); ++other) {
        PCCL_ASSIGN_OR_RETURN(const auto id, driver_.gpu_id(other));
        const auto found = std::ranges::find(placements, id, &GpuPlacement::gpu);
        if (found == placements.end()) continue;
        PCCL_ASSIGN_OR_RETURN(const bool can_reach, driver_.can_reach(options_.device, other));
        if (!can_reach)
            return Status::unsupported(concat("the driver lets its GPU not access that of rank ",
                                              found - placements.begin()));
    }
    return Status::ok();
}

}  // namespace pccl::device
