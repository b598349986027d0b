// SPDX-License-Identifier: Apache-2.0

// Launches of several collectives that one call passes together.
#include <algorithm>

#include "csrc/device/device_group.h"
#include "csrc/device/launch/batching.h"

namespace pccl::device {

Status DeviceGroupImpl::launch_all(std::span<const Collective> collectives, kernels::Stream stream,
                                   const DeviceLaunch& wanted) {
    PCCL_TRY(check_process());
    if (collectives.empty()) return Status::ok();
    const auto lock = enter(wanted.timeout);
    log(collectives, stream, wanted);
    return result_of(launch_together(collectives, stream, wanted));
}

Status DeviceGroupImpl::launch_together(std::span<const Collective> collectives,
                                        kernels::Stream stream, const DeviceLaunch& wanted) {
    std::span<const Collective> free;  // a prefix of them that runs in kernels
    while (!collectives.empty()) {
        if (free.empty()) free = left_to_kernels(collectives, wanted);
        const std::size_t small = free.empty() ? 1 : batch_length(free, preferences_, gpus_);
        const std::size_t large = free.empty() ? 1 : large_batch_length(free, preferences_, gpus_);
        const auto some = collectives.first(std::max(small, large));
        if (large > small) {
            PCCL_TRY(launch_large_batch(some, stream));
        } else if (small > 1) {
            PCCL_TRY(launch_batch(some, stream));
        } else {
            PCCL_TRY(launch_alone(some.front(), stream, wanted));
        }
        collectives = collectives.subspan(some.size());
        free = free.subspan(std::min(some.size(), free.size()));
    }
    return Status::ok();
}

std::span<const Collective> DeviceGroupImpl::left_to_kernels(
    std::span<const Collective> collectives, const DeviceLaunch& wanted) const {
    if (options_.size == 1 || wanted.plan || wanted.schedule != nullptr) return {};
    const auto is_scheduled = [&](const Collective& collective) {
        const auto source = schedule_for(collective, wanted);
        return !source.is_ok() || *source != nullptr;
    };
    const auto end = std::ranges::find_if(collectives, is_scheduled);
    return {collectives.begin(), end};
}

Status DeviceGroupImpl::launch_batch(std::span<const Collective> collectives,
                                     kernels::Stream stream) {
    PCCL_ASSIGN_OR_RETURN(
        kernels::BatchLaunch batch,
        make_batch(collectives, preferences_.most_blocks, options_.rank, options_.size));
    if (batch.words == 0) return Status::ok();
    PCCL_TRY(why_over());
    batch.team = team_;
    return launch_in_order(stream, batch.plan,
                           [&] { return kernels::launch_batch(batch, stream); });
}

Status DeviceGroupImpl::launch_large_batch(std::span<const Collective> collectives,
                                           kernels::Stream stream) {
    PCCL_ASSIGN_OR_RETURN(
        kernels::LargeBatch batch,
        make_large_batch(collectives, preferences_.most_blocks, options_.rank, options_.size));
    PCCL_TRY(why_over());
    batch.team = team_;
    PCCL_ASSIGN_OR_RETURN(const Tensors tensors, share_tensors(collectives));
    for (std::size_t i = 0; i < collectives.size(); ++i) {
        std::ranges::copy(tensors.inputs[i].at, batch.parts[i].peer_pointers.inputs);
        std::ranges::copy(tensors.outputs[i].at, batch.parts[i].peer_pointers.outputs);
    }
    return launch_in_order(stream, batch.plan, [&] {
        PCCL_TRY(copy_in(collectives, tensors, stream));
        PCCL_TRY(kernels::launch_large_batch(batch, stream));
        return copy_out(collectives, tensors, stream);
    });
}

}  // namespace pccl::device
