// SPDX-License-Identifier: Apache-2.0

// Shares of a byte range among ranks, blocks or workers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pccl::kernels::device {

struct Range {
    std::size_t begin;
    std::size_t bytes;
};

/// Returns `bytes` from `begin` on, clipped to `all`.
__device__ __forceinline__ Range within(std::size_t all, std::size_t begin, std::size_t bytes) {
    const std::size_t first = min(begin, all);
    return {first, min(bytes, all - first)};
}

/// `bytes` in equal shares of whole cache lines; the last ones are shorter or empty. NVLink carries
/// whole lines faster.
struct Shares {
    std::size_t bytes;
    std::size_t each;

    __device__ Shares(std::size_t bytes, int shares) : bytes(bytes) {
        constexpr std::size_t kCacheLine = 128;
        const std::size_t up = bytes + shares - 1;
        const std::size_t even =
            up >> 32 == 0 ? static_cast<std::uint32_t>(up) / static_cast<std::uint32_t>(shares)
                          : up / shares;  // a 64-bit division: slow, and no single instruction
        each = (even + kCacheLine - 1) / kCacheLine * kCacheLine;
    }
    [[nodiscard]] __device__ Range of(int index) const { return within(bytes, each * index, each); }
};

}  // namespace pccl::kernels::device
