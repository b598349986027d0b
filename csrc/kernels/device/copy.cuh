// SPDX-License-Identifier: Apache-2.0

// Copies of large messages directly between the ranks' tensors, in the widest packets that the
// addresses allow.
#pragma once

#include <cstddef>
#include <cstdint>

#include "csrc/kernels/device/packets.cuh"
#include "csrc/kernels/device/reduce.cuh"

namespace pccl::kernels::device {

/// Range of whole 16-byte packets at multiples of 16 within a buffer.
struct Middle {
    std::size_t begin;
    std::size_t bytes;

    __device__ Middle(std::uintptr_t address, std::size_t whole)
        : begin(min(whole, static_cast<std::size_t>(-address % 16))),
          bytes((whole - begin) / 16 * 16) {}
    [[nodiscard]] __device__ std::size_t packets() const { return bytes / 16; }
};

/// Combines the bytes of `whole` before and behind a middle, one element for each thread. There is
/// less than a packet on either side, 30 bytes at most, and a thread group has at least one warp.
template <int kMost, int kMostTargets, typename Reduction>
__device__ __forceinline__ void combine_ends(const ThreadGroup& group, const Sources& from,
                                             const Targets& to, const Middle& middle,
                                             std::size_t whole, const Reduction& reduction) {
    constexpr std::size_t kElement = sizeof(typename Reduction::Element);
    const std::size_t index = group.first * kElement;
    if (index >= whole - middle.bytes) return;
    const std::size_t at = index < middle.begin ? index : index + middle.bytes;
    combine_packets<Packets<kElement>, kMost, kMostTargets>({0, 1}, from.behind(at), to.behind(at),
                                                            1, reduction);
}

__device__ __forceinline__ bool are_aligned(const Sources& from, const Targets& to) {
    return (from.differences(0) | to.differences(0)) % 16 == 0;
}

template <int kMost, int kMostTargets, typename Reduction>
__device__ __forceinline__ void combine_aligned(const ThreadGroup& group, const Sources& from,
                                                const Targets& to, std::size_t bytes,
                                                const Reduction& reduction) {
    const Middle all(0, bytes);
    combine_packets<Packets<16>, kMost, kMostTargets>(group, from, to, all.packets(), reduction);
    combine_ends<kMost, kMostTargets>(group, from, to, all, bytes, reduction);
}

template <int kMost, int kMostTargets, typename Reduction>
__device__ __forceinline__ void combine_elements(const ThreadGroup& group, const Sources& from,
                                                 const Targets& to, std::size_t bytes,
                                                 const Reduction& reduction) {
    constexpr int kElement = sizeof(typename Reduction::Element);
    combine_packets<Packets<kElement>, kMost, kMostTargets>(group, from, to, bytes / kElement,
                                                            reduction);
}

/// Combines in packets where at least the sources have the same offset from a multiple of 16,
/// otherwise element by element. It is separate from the rest, which it would slow down.
template <int kMost, int kMostTargets, typename Reduction>
__device__ __noinline__ void combine_unaligned(ThreadGroup group, const Sources& from,
                                               const Targets& to, std::size_t bytes,
                                               Reduction reduction) {
    constexpr int kElement = sizeof(typename Reduction::Element);
    const std::uintptr_t first = from.first_address();
    if (from.differences(first) % 16 != 0)
        return combine_elements<kMost, kMostTargets>(group, from, to, bytes, reduction);
    const Middle middle(first, bytes);
    const Sources sources = from.behind(middle.begin);
    const Targets targets = to.behind(middle.begin);
    if (to.differences(first) % 16 == 0) {
        combine_packets<Packets<16>, kMost, kMostTargets>(group, sources, targets, middle.packets(),
                                                          reduction);
    } else {
        combine_packets<Packets<16, 16, kElement>, kMost, kMostTargets>(
            group, sources, targets, middle.packets(), reduction);
    }
    combine_ends<kMost, kMostTargets>(group, from, to, middle, bytes, reduction);
}

/// Combines `bytes` from the sources into all targets. Use it once in a kernel: in a loop, the
/// inner call would take registers that the loop needs.
template <int kMost, int kMostTargets = abi::kMostDevices, typename Reduction>
__device__ __forceinline__ void combine_bytes(const ThreadGroup& group, const Sources& from,
                                              const Targets& to, std::size_t bytes,
                                              const Reduction& reduction) {
    if (are_aligned(from, to))
        return combine_aligned<kMost, kMostTargets>(group, from, to, bytes, reduction);
    const Sources sources = from;
    const Targets targets = to;
    combine_unaligned<kMost, kMostTargets>(group, sources, targets, bytes, reduction);
}

/// Does the same, also in a loop; slow where addresses are not multiples of 16.
template <int kMost, int kMostTargets, typename Reduction>
__device__ __forceinline__ void combine_bytes_in_loop(const ThreadGroup& group, const Sources& from,
                                                      const Targets& to, std::size_t bytes,
                                                      const Reduction& reduction) {
    if (are_aligned(from, to)) {
        combine_aligned<kMost, kMostTargets>(group, from, to, bytes, reduction);
    } else {
        combine_elements<kMost, kMostTargets>(group, from, to, bytes, reduction);
    }
}

/// Copies the middle: the targets, which are the peers', get whole packets.
template <int kLoads, int kMostTargets>
__device__ __forceinline__ void copy_middle(const ThreadGroup& group, const Sources& from,
                                            const Targets& to, const Middle& middle) {
    combine_packets<Packets<16, kLoads>, 1, kMostTargets>(
        group, from.behind(middle.begin), to.behind(middle.begin), middle.packets(), FirstOnly{});
}

/// Copies `bytes` from one address to all targets: in packets if the targets have the same offset
/// from a multiple of 16, in pieces as long as the source's address allows.
template <int kMostTargets = abi::kMostDevices>
__device__ __forceinline__ void copy_bytes(const ThreadGroup& group, const std::byte* source,
                                           const Targets& to, std::size_t bytes) {
    Sources from{};
    from.be_only(source);
    if (are_aligned(from, to))
        return combine_aligned<1, kMostTargets>(group, from, to, bytes, FirstOnly{});
    const std::uintptr_t first = to.first_address();
    if (to.differences(first) % 16 != 0)
        return combine_elements<1, kMostTargets>(group, from, to, bytes, FirstOnly{});
    const Middle middle(first, bytes);
    const std::uintptr_t differences = from.differences(first);
    if (differences % 16 == 0) {
        copy_middle<16, kMostTargets>(group, from, to, middle);
    } else if (differences % 4 == 0) {
        copy_middle<4, kMostTargets>(group, from, to, middle);
    } else if (differences % 2 == 0) {
        copy_middle<2, kMostTargets>(group, from, to, middle);
    } else {
        copy_middle<1, kMostTargets>(group, from, to, middle);
    }
    combine_ends<1, kMostTargets>(group, from, to, middle, bytes, FirstOnly{});
}

__device__ __forceinline__ void copy_bytes(const ThreadGroup& group, const std::byte* from,
                                           std::byte* to, std::size_t bytes) {
    Targets target{};
    target.be_only(to);
    copy_bytes<1>(group, from, target, bytes);
}

}  // namespace pccl::kernels::device
