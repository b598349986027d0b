// SPDX-License-Identifier: Apache-2.0

// Comparison of the lengths of blocks, which only pairs of ranks have.
#pragma once

#include <cstddef>
#include <cstdint>

#include "csrc/kernels/device/epoch_scope.cuh"

namespace pccl::kernels::device {

/// Returns whether all peers expect the `lengths` that this rank sends, in bytes by peer. The
/// expected ones arrive as addresses of inputs, which no rank shares here. All threads call it.
__device__ inline bool have_equal_lengths(const abi::DeviceTeam& team, const std::size_t* lengths,
                                          const EpochScope::Addresses& addresses) {
    const int peer = static_cast<int>(threadIdx.x);
    bool is_agreed = true;
    if (peer < team.size) {
        const std::size_t sent = lengths[peer];
        const auto expected = reinterpret_cast<std::uintptr_t>(addresses.inputs[peer]);
        is_agreed = expected == sent;
        if (!is_agreed) report(team, {abi::DevicePhase::kLength, peer, sent, expected});
    }
    return __syncthreads_and(is_agreed) != 0;
}

}  // namespace pccl::kernels::device
