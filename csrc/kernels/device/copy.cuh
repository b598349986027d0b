// Large messages: the threads of all blocks move packets (the widest loads that the addresses
// allow) straight between the ranks' tensors, several loads in flight each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "csrc/kernels/device/reduce.cuh"
#include "csrc/kernels/device/sync.cuh"

namespace pccl::kernels::device {

template <int kBytes>
struct PacketOf;
template <>
struct PacketOf<1> {
    using Type = std::uint8_t;
};
template <>
struct PacketOf<2> {
    using Type = std::uint16_t;
};
template <>
struct PacketOf<4> {
    using Type = std::uint32_t;
};
template <>
struct PacketOf<8> {
    using Type = std::uint64_t;
};
template <>
struct PacketOf<16> {
    using Type = uint4;
};
template <int kBytes>
using Packet = typename PacketOf<kBytes>::Type;

/// Bytes that a thread has in flight, at least: NVLink answers after more than a microsecond.
inline constexpr int kBytesInFlight = 128;

/// Several tensors, each at one address; members beyond `count` are not used.
template <typename Pointer>
struct Places {
    Pointer at[abi::kMostDevices];
    int count;

    /// The low bits that any address has.
    [[nodiscard]] __device__ std::uintptr_t bits() const {
        std::uintptr_t all = 0;
#pragma unroll
        for (int i = 0; i < abi::kMostDevices; ++i)
            if (i < count) all |= reinterpret_cast<std::uintptr_t>(at[i]);
        return all;
    }
};
using Sources = Places<const std::byte*>;
using Targets = Places<std::byte*>;

/// Who shares the packets of one copy: the threads of all blocks, or those of this one.
struct Crew {
    std::size_t first;   // packet of this thread
    std::size_t stride;  // threads in all
};
__device__ __forceinline__ Crew grid_crew() {
    return {blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x,
            gridDim.x * static_cast<std::size_t>(blockDim.x)};
}
/// Of `block` among `blocks`.
__device__ __forceinline__ Crew crew_of(int block, int blocks) {
    return {block * static_cast<std::size_t>(blockDim.x) + threadIdx.x,
            blocks * static_cast<std::size_t>(blockDim.x)};
}
__device__ __forceinline__ Crew block_crew() { return {threadIdx.x, blockDim.x}; }

template <typename Raw>
__device__ __forceinline__ Raw load_packet(const std::byte* from, std::size_t index) {
    return load_system(reinterpret_cast<const Raw*>(from) + index);
}
template <typename Raw>
__device__ __forceinline__ void store_packet(std::byte* to, std::size_t index, const Raw& packet) {
    reinterpret_cast<Raw*>(to)[index] = packet;
}

struct Range {
    std::size_t begin;
    std::size_t bytes;
};

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
    [[nodiscard]] __device__ Range of(int index) const {
        const std::size_t begin = min(each * index, bytes);
        return {begin, min(each, bytes - begin)};
    }
};

/// In place of a reduction: there is one source, which is passed on as it is.
struct FirstOnly {};

/// Packets [begin, end): combines those of all sources, in the order given, and stores the result
/// to all targets. kMost bounds the number of sources; with fewer, more packets are in flight.
template <int kMost, int kMostTargets, typename Raw, typename Reduction>
__device__ __forceinline__ void combine_packets(const Crew& crew, const Sources& from,
                                                const Targets& to, std::size_t begin,
                                                std::size_t end, const Reduction& reduction) {
    constexpr int kWanted = kBytesInFlight / (kMost * static_cast<int>(sizeof(Raw)));
    constexpr int kUnroll = kWanted < 1 ? 1 : (kWanted > 8 ? 8 : kWanted);
    const std::size_t stride = crew.stride;
    for (std::size_t i = begin + crew.first; i < end; i += kUnroll * stride) {
        Raw packets[kUnroll][kMost];
#pragma unroll
        for (int u = 0; u < kUnroll; ++u)
#pragma unroll
            for (int k = 0; k < kMost; ++k)
                if (k < from.count && i + u * stride < end)
                    packets[u][k] = load_packet<Raw>(from.at[k], i + u * stride);
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            if (i + u * stride >= end) break;
            Raw result = packets[u][0];
            if constexpr (!std::is_same_v<Reduction, FirstOnly>) {
                Lanes<Reduction, Raw> sum(packets[u][0]);
#pragma unroll
                for (int k = 1; k < kMost; ++k)
                    if (k < from.count)
                        sum.combine(reduction, Lanes<Reduction, Raw>(packets[u][k]));
                result = sum.finish(reduction);
            }
#pragma unroll
            for (int k = 0; k < kMostTargets; ++k)
                if (k < to.count) store_packet(to.at[k], i + u * stride, result);
        }
    }
}

/// `bytes` from the sources, combined, to all targets: 16 bytes at a time where all addresses allow
/// it, else one element at a time.
template <int kMost, int kMostTargets = abi::kMostDevices, typename Reduction>
__device__ __forceinline__ void combine_bytes(const Crew& crew, const Sources& from,
                                              const Targets& to, std::size_t bytes,
                                              const Reduction& reduction) {
    constexpr int kElement = sizeof(typename Reduction::Element);
    using Element = Packet<kElement>;
    std::size_t done = 0;
    if ((from.bits() | to.bits()) % sizeof(uint4) == 0) {
        done = bytes / sizeof(uint4) * sizeof(uint4);
        combine_packets<kMost, kMostTargets, uint4>(crew, from, to, 0, bytes / sizeof(uint4),
                                                    reduction);
    }
    combine_packets<kMost, kMostTargets, Element>(crew, from, to, done / kElement, bytes / kElement,
                                                  reduction);
}

/// `bytes` from one place to all targets, in packets as wide as all addresses allow.
template <int kMostTargets = abi::kMostDevices>
__device__ __forceinline__ void copy_bytes(const Crew& crew, const std::byte* from,
                                           const Targets& to, std::size_t bytes) {
    Sources source{};
    source.at[0] = from;
    source.count = 1;
    const std::uintptr_t bits = source.bits() | to.bits();
    std::size_t done = 0;
    if (bits % 16 == 0) {
        done = bytes / 16 * 16;
        combine_packets<1, kMostTargets, Packet<16>>(crew, source, to, 0, bytes / 16, FirstOnly{});
    } else if (bits % 4 == 0) {
        done = bytes / 4 * 4;
        combine_packets<1, kMostTargets, Packet<4>>(crew, source, to, 0, bytes / 4, FirstOnly{});
    } else if (bits % 2 == 0) {
        done = bytes / 2 * 2;
        combine_packets<1, kMostTargets, Packet<2>>(crew, source, to, 0, bytes / 2, FirstOnly{});
    }
    combine_packets<1, kMostTargets, Packet<1>>(crew, source, to, done, bytes, FirstOnly{});
}

__device__ __forceinline__ void copy_bytes(const Crew& crew, const std::byte* from, std::byte* to,
                                           std::size_t bytes) {
    Targets target{};
    target.at[0] = to;
    target.count = 1;
    copy_bytes<1>(crew, from, target, bytes);
}

}  // namespace pccl::kernels::device
