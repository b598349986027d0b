// What blocks do straight between the ranks' tensors, once they know where these are.
#pragma once

#include "csrc/kernels/device/copy.cuh"
#include "csrc/kernels/device/sync.cuh"

namespace pccl::kernels::device {

/// All ranks' inputs from `begin` on. This rank's is the first, so that the ranks do not all read
/// from one at a time.
template <int kMost>
__device__ __forceinline__ Sources all_inputs(const abi::DeviceTeam& team,
                                              const Visit::Addresses& addresses,
                                              std::size_t begin) {
    Sources from{};
    from.count = team.size;
#pragma unroll
    for (int step = 0; step < kMost; ++step)
        from.at[step] = addresses.inputs[(team.rank + step) % team.size] + begin;
    return from;
}

/// The same of the outputs.
template <int kMost>
__device__ __forceinline__ Targets all_outputs(const abi::DeviceTeam& team,
                                               const Visit::Addresses& addresses,
                                               std::size_t begin) {
    Targets to{};
    to.count = team.size;
#pragma unroll
    for (int step = 0; step < kMost; ++step)
        to.at[step] = addresses.outputs[(team.rank + step) % team.size] + begin;
    return to;
}

__device__ __forceinline__ Targets one_output(std::byte* output) {
    Targets to{};
    to.be_only(output);
    return to;
}

/// Loads a block once, and stores it to all outputs, but where it comes from.
__device__ __forceinline__ void push_to_all(const Crew& crew, const abi::DeviceTeam& team,
                                            const Visit::Addresses& addresses,
                                            const std::byte* block, std::size_t bytes) {
    const int in_place = addresses.outputs[team.rank] == block ? 1 : 0;
    Targets to{};
    to.count = team.size - in_place;
#pragma unroll
    for (int step = 0; step < abi::kMostDevices; ++step)
        to.at[step] = addresses.outputs[(team.rank + in_place + step) % team.size];
    copy_bytes(crew, block, to, bytes);
}

}  // namespace pccl::kernels::device
