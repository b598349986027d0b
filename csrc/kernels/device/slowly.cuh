// SPDX-License-Identifier: Apache-2.0

// Code for rare cases, which lies in every kernel: it is short instead of fast.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pccl::kernels::device {

template <typename T>
__device__ __noinline__ inline void copy_slowly(T& to, const T& from) {
    using Piece = std::uint64_t;
    static_assert(sizeof(T) % sizeof(Piece) == 0 && alignof(T) == sizeof(Piece));
#pragma unroll 1
    for (std::size_t i = 0; i < sizeof(T) / sizeof(Piece); ++i)
        reinterpret_cast<Piece*>(&to)[i] = reinterpret_cast<const Piece*>(&from)[i];
}

}  // namespace pccl::kernels::device
