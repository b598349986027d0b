// SPDX-License-Identifier: Apache-2.0

// Heaps of a group, in the memory that all its GPUs reach.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "csrc/base/ids.h"
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
        usable.peers = map_peers(placements, usable.reached);
        usable.nvlinks = check_nvlinks(placements);
    }
    if (usable.host.is_ok()) usable.host = check_host_memory(driver_);
    PCCL_ASSIGN_OR_RETURN(ChosenPath chosen, agree_on_path(rendezvous, usable));
    gpus_.path = chosen.path;
    why_path_ = std::move(chosen.why);
    loaded_ = LoadedSchedules(*catalogue_, gpus_);  // fewer schedules may run on this path
    return gpus_.are_over_pcie() ? make_states_for(chosen, deadline) : Status::ok();
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

Status DeviceGroupImpl::map_peers(std::span<const GpuPlacement> placements, RankBits& reached) {
    Status obstacle;
    for (Rank rank = 0; rank < options_.size; ++rank) {
        Status mapped = check_reach(placements[at(rank)], rank);
        if (mapped.is_ok()) mapped = heap_->map(rank);
        if (mapped.is_ok())
            reached |= bit_of(rank);
        else if (obstacle.is_ok())
            obstacle = std::move(mapped);
    }
    return obstacle;
}

Status DeviceGroupImpl::make_states_for(const ChosenPath& chosen, Deadline deadline) {
    if (chosen.path == GpuPath::kPcie) {
        PCCL_ASSIGN_OR_RETURN(states_, make_states(MemoryKind::kGpu, deadline));
        return Status::ok();
    }
    PCCL_TRY(make_heap_of(MemoryKind::kHost, deadline));
    PCCL_TRY(heap_->map());
    PCCL_ASSIGN_OR_RETURN(states_, make_states(MemoryKind::kHost, deadline));
    if (!chosen.links_any()) return Status::ok();
    linked_ = chosen.linked[at(options_.rank)];
    PCCL_ASSIGN_OR_RETURN(linked_states_, make_states(MemoryKind::kGpu, deadline));
    return Status::ok();
}

Result<std::unique_ptr<SymmetricHeap>> DeviceGroupImpl::make_states(MemoryKind kind,
                                                                    Deadline deadline) const {
    return SymmetricHeap::create({.driver = driver_,
                                  .device = options_.device,
                                  .bytes = abi::state_bytes(options_.size),
                                  .kind = kind,
                                  .maps_later = true},
                                 *sockets_, deadline);
}

Result<std::optional<int>> DeviceGroupImpl::visible(const GpuPlacement& placement) const {
    PCCL_ASSIGN_OR_RETURN(const auto gpus, driver_.bus_ids());
    for (int gpu = 0; gpu < static_cast<int>(gpus.size()); ++gpu) {
        PCCL_ASSIGN_OR_RETURN(const auto id, driver_.gpu_id(gpu));
        if (id == placement.gpu) return std::optional<int>(gpu);
    }
    return std::optional<int>();
}

/// Checks the GPU of `rank` if this process sees it; mapping its heap checks it otherwise.
Status DeviceGroupImpl::check_reach(const GpuPlacement& placement, Rank rank) const {
    PCCL_ASSIGN_OR_RETURN(const auto other, visible(placement));
    if (!other) return Status::ok();
    PCCL_ASSIGN_OR_RETURN(const bool can_reach, driver_.can_reach(options_.device, *other));
    if (can_reach) return Status::ok();
    return Status::unsupported(concat("the driver lets its GPU not access that of rank ", rank));
}

/// Checks the GPUs that this process sees. The others are taken for linked.
Status DeviceGroupImpl::check_nvlinks(std::span<const GpuPlacement> placements) const {
    for (Rank rank = 0; rank < options_.size; ++rank) {
        PCCL_ASSIGN_OR_RETURN(const auto other, visible(placements[at(rank)]));
        if (!other) continue;
        PCCL_ASSIGN_OR_RETURN(const bool has_nvlink, driver_.has_nvlink(options_.device, *other));
        if (!has_nvlink)
            return Status::unsupported(
                concat("no NVLink leads from its GPU to that of rank ", rank));
    }
    return Status::ok();
}

}  // namespace pccl::device
