// Numbers that count up and wrap: of epochs, messages, steps.
#pragma once

#include <cstdint>

namespace pccl::kernels::device {

/// Whether counter `seen` has reached `wanted`; both wrap.
__device__ __forceinline__ bool has_reached(std::uint32_t seen, std::uint32_t wanted) {
    return static_cast<std::int32_t>(seen - wanted) >= 0;
}

/// The number after `last`; 0 is what memory holds before the first line.
__device__ __forceinline__ std::uint32_t number_after(std::uint32_t last) {
    return last + 1 == 0 ? 1 : last + 1;
}

/// The epoch after `last`: of the other parity, since lines alternate between two places.
__device__ __forceinline__ std::uint32_t epoch_after(std::uint32_t last) {
    return last + 1 == 0 ? 2 : last + 1;
}

}  // namespace pccl::kernels::device
