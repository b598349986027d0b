// SPDX-License-Identifier: Apache-2.0

// Wrapping counters of epochs, messages and steps.
#pragma once

#include <cstdint>

namespace pccl::kernels::device {

/// Returns whether counter `seen` has reached `wanted`; both wrap.
__device__ __forceinline__ bool has_reached(std::uint32_t seen, std::uint32_t wanted) {
    return static_cast<std::int32_t>(seen - wanted) >= 0;
}

/// Returns the number after `last`, never 0: memory contains 0 before the first line.
__device__ __forceinline__ std::uint32_t number_after(std::uint32_t last) {
    return last + 1 == 0 ? 1 : last + 1;
}

/// Returns the epoch after `last`, which has the other parity, since lines alternate between two
/// places.
__device__ __forceinline__ std::uint32_t epoch_after(std::uint32_t last) {
    return last + 1 == 0 ? 2 : last + 1;
}

}  // namespace pccl::kernels::device
