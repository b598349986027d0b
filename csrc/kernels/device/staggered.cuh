// SPDX-License-Identifier: Apache-2.0

// Staggered pushes of large messages without collisions. Where all ranks push to all others at
// will, receivers get bursts from several at once, and NVLink stays a tenth below its rate between
// two GPUs.
#pragma once

#include "csrc/kernels/device/copy.cuh"
#include "csrc/kernels/device/epoch_scope.cuh"

namespace pccl::kernels::device {

/// Pushes in steps s = 1 ... n - 1: a block pushes to the rank s places after its own, once the
/// next rank, which pushed there in the previous step, has ended that step.
class StaggeredPush {
   public:
    __device__ StaggeredPush(const abi::DeviceTeam& team, const EpochScope& scope)
        : team_(team), scope_(scope), first_(scope.epoch() * abi::kMostDevices) {}

    /// Calls push(peer) in each step; all threads call it. False when the next rank did not come
    /// that far; the block has then withdrawn.
    template <typename Push>
    [[nodiscard]] __device__ __forceinline__ bool run(Push push) const {
        int step = 1;
        for (; step < team_.size && begin(step); ++step) {
            push((team_.rank + step) % team_.size);
            end(step);
        }
        if (step >= team_.size) return true;
        scope_.withdraw();
        return false;
    }

   private:
    [[nodiscard]] __device__ bool begin(int step) const {
        bool came = true;
        if (step > 1 && threadIdx.x == 0)
            came = await_counter(team_, abi::DevicePhase::kStaggerStep,
                                 &channel_of(team_.rank).stagger_step,
                                 (team_.rank + 1) % team_.size, first_ + step - 1);
        return __syncthreads_and(came) != 0;
    }
    /// Ends a step while its stores may still be in flight: the steps order traffic, not data.
    __device__ void end(int step) const {
        __syncthreads();
        const int before = (team_.rank + team_.size - 1) % team_.size;
        if (threadIdx.x == 0) store_relaxed(&channel_of(before).stagger_step, first_ + step);
    }
    [[nodiscard]] __device__ abi::BlockChannel& channel_of(int rank) const {
        return team_.heaps[rank]->channels[blockIdx.x];
    }

    const abi::DeviceTeam& team_;
    const EpochScope& scope_;
    const std::uint32_t first_;
};

}  // namespace pccl::kernels::device
