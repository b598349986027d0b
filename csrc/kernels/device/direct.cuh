// SPDX-License-Identifier: Apache-2.0

// Direct accesses of blocks to the ranks' tensors, after their addresses were exchanged.
#pragma once

#include "csrc/kernels/device/copy.cuh"
#include "csrc/kernels/device/epoch_scope.cuh"

namespace pccl::kernels::device {

/// Returns all ranks' inputs or outputs from `begin` on. This rank's is the first, so that the
/// ranks do not all read from one rank at a time.
template <int kMost, typename Pointer>
__device__ __forceinline__ Places<Pointer> all_of(const abi::DeviceTeam& team,
                                                  const Pointer (&tensors)[abi::kMostDevices],
                                                  std::size_t begin) {
    Places<Pointer> places{};
    places.count = team.size;
#pragma unroll
    for (int step = 0; step < kMost; ++step)
        places.at[step] = tensors[(team.rank + step) % team.size] + begin;
    return places;
}

__device__ __forceinline__ Targets one_output(std::byte* output) {
    Targets to{};
    to.be_only(output);
    return to;
}

/// Loads a block once and stores it to all outputs except its own place.
__device__ __forceinline__ void push_to_all(const ThreadGroup& group, const abi::DeviceTeam& team,
                                            const EpochScope::Addresses& addresses,
                                            const std::byte* block, std::size_t bytes) {
    const int in_place = addresses.outputs[team.rank] == block ? 1 : 0;
    Targets to{};
    to.count = team.size - in_place;
#pragma unroll
    for (int step = 0; step < abi::kMostDevices; ++step)
        to.at[step] = addresses.outputs[(team.rank + in_place + step) % team.size];
    copy_bytes(group, block, to, bytes);
}

}  // namespace pccl::kernels::device
