// What each of several ranks, blocks or workers has of some bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pccl::kernels::device {

struct Range {
    std::size_t begin;
    std::size_t bytes;
};

/// `bytes` from `begin` on, as far as there are so many in `all`.
__device__ __forceinline__ Range within(std::size_t all, std::size_t begin, std::size_t bytes) {
    const std::size_t first = min(begin, all);
    return {first, min(bytes, all - first)};
}

/// `bytes` in equal shares of whole cache lines, the last ones shorter, or empty: NVLink carries
/// whole lines faster.
struct Shares {
    std::size_t bytes;
    std::size_t each;

    __device__ Shares(std::size_t bytes, int shares) : bytes(bytes) {
        constexpr std::size_t kCacheLine = 128;
        const std::size_t up = bytes + shares - 1;
        const std::size_t even =
            up >> 32 == 0 ? static_cast<std::uint32_t>(up) / static_cast<std::uint32_t>(shares)
                          : up / shares;  // of 64 bits: slow, and no single instruction
        each = (even + kCacheLine - 1) / kCacheLine * kCacheLine;
    }
    [[nodiscard]] __device__ Range of(int index) const { return within(bytes, each * index, each); }
};

}  // namespace pccl::kernels::device
