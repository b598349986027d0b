// Large messages without collisions: where all ranks push to all others as they like, receivers see
// bursts from several at once, and NVLink stays a tenth below what it carries from one to one.
#pragma once

#include "csrc/kernels/device/copy.cuh"
#include "csrc/kernels/device/sync.cuh"

namespace pccl::kernels::device {

/// In turn s = 1 ... n - 1 a block pushes to the rank s places after its own, once the next rank,
/// which pushed there in the turn before, has ended that turn.
class Turns {
   public:
    __device__ Turns(const abi::DeviceTeam& team, const Visit& visit)
        : team_(team), visit_(visit), first_(visit.epoch() * abi::kMostDevices) {}

    /// Calls push(peer) in each turn. To be called by all threads; false when the next rank did not
    /// come that far: then it has retreated.
    template <typename Push>
    [[nodiscard]] __device__ __forceinline__ bool take(Push push) const {
        int turn = 1;
        for (; turn < team_.size && begin(turn); ++turn) {
            push((team_.rank + turn) % team_.size);
            end(turn);
        }
        if (turn >= team_.size) return true;
        visit_.retreat();
        return false;
    }

   private:
    [[nodiscard]] __device__ bool begin(int turn) const {
        bool came = true;
        if (turn > 1 && threadIdx.x == 0)
            came = await_counter(team_, abi::DevicePhase::kTurn, &channel_of(team_.rank).turn,
                                 (team_.rank + 1) % team_.size, first_ + turn - 1);
        return __syncthreads_and(came) != 0;
    }
    /// What was pushed may still be on its way: this is about traffic, not about data.
    __device__ void end(int turn) const {
        __syncthreads();
        const int before = (team_.rank + team_.size - 1) % team_.size;
        if (threadIdx.x == 0) store_relaxed(&channel_of(before).turn, first_ + turn);
    }
    [[nodiscard]] __device__ abi::Channel& channel_of(int rank) const {
        return team_.heaps[rank]->channels[blockIdx.x];
    }

    const abi::DeviceTeam& team_;
    const Visit& visit_;
    const std::uint32_t first_;
};

}  // namespace pccl::kernels::device
