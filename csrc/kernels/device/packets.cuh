// SPDX-License-Identifier: Apache-2.0

// Moves of packets between several tensors by a thread group, with several loads in flight for each
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "csrc/abi/device_team.h"
#include "csrc/kernels/device/ptx.cuh"
#include "csrc/kernels/device/reduce.cuh"

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

/// Least bytes in flight for each thread: NVLink has a latency of more than a microsecond.
inline constexpr int kBytesInFlight = 128;

/// Several tensors, each at one address; members beyond `count` are not used.
template <typename Pointer>
struct Places {
    Pointer at[abi::kMostDevices];
    int count;

    __device__ void be_only(Pointer place) {
        at[0] = place;
        count = 1;
    }
    /// Returns the bits in which any address differs from `other`.
    [[nodiscard]] __device__ std::uintptr_t differences(std::uintptr_t other) const {
        std::uintptr_t all = 0;
#pragma unroll
        for (int i = 0; i < abi::kMostDevices; ++i)
            if (i < count) all |= reinterpret_cast<std::uintptr_t>(at[i]) ^ other;
        return all;
    }
    [[nodiscard]] __device__ std::uintptr_t first_address() const {
        return reinterpret_cast<std::uintptr_t>(at[0]);
    }
    /// Returns the same places, `bytes` later.
    [[nodiscard]] __device__ Places behind(std::size_t bytes) const {
        Places later = *this;
#pragma unroll
        for (int i = 0; i < abi::kMostDevices; ++i)
            if (i < count) later.at[i] += bytes;
        return later;
    }
};
using Sources = Places<const std::byte*>;
using Targets = Places<std::byte*>;

/// Threads that share the packets of one copy: those of all blocks, or of this one.
struct ThreadGroup {
    std::size_t first;   // first packet of this thread
    std::size_t stride;  // number of threads
};
__device__ __forceinline__ ThreadGroup grid_group() {
    return {blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x,
            gridDim.x * static_cast<std::size_t>(blockDim.x)};
}
/// Returns the threads of `block` among `blocks`.
__device__ __forceinline__ ThreadGroup group_of(int block, int blocks) {
    return {block * static_cast<std::size_t>(blockDim.x) + threadIdx.x,
            blocks * static_cast<std::size_t>(blockDim.x)};
}
__device__ __forceinline__ ThreadGroup block_group() { return {threadIdx.x, blockDim.x}; }

/// Loads a packet that begins at a multiple of kPiece; a longer packet is loaded in pieces of that
/// size.
template <typename Raw, int kPiece = sizeof(Raw)>
__device__ __forceinline__ Raw load_packet(const std::byte* from) {
    using Piece = Packet<kPiece>;
    if constexpr (kPiece == sizeof(Raw)) {
        return load_system(reinterpret_cast<const Raw*>(from));
    } else {
        Piece pieces[sizeof(Raw) / kPiece];
#pragma unroll
        for (Piece& piece : pieces) {
            piece = load_system(reinterpret_cast<const Piece*>(from));
            from += kPiece;
        }
        Raw packet;
        memcpy(&packet, pieces, sizeof packet);
        return packet;
    }
}
template <typename Raw, int kPiece = sizeof(Raw)>
__device__ __forceinline__ void store_packet(std::byte* to, const Raw& packet) {
    using Piece = Packet<kPiece>;
    if constexpr (kPiece == sizeof(Raw)) {
        *reinterpret_cast<Raw*>(to) = packet;
    } else {
        Piece pieces[sizeof(Raw) / kPiece];
        memcpy(pieces, &packet, sizeof packet);
#pragma unroll
        for (const Piece& piece : pieces) {
            *reinterpret_cast<Piece*>(to) = piece;
            to += kPiece;
        }
    }
}

/// Stand-in for a reduction with one source, which is passed on unchanged, byte by byte at worst.
struct FirstOnly {
    using Element = std::uint8_t;
};

/// Packets of one width, and the pieces in which they are loaded and stored.
template <int kWidth, int kLoads = kWidth, int kStores = kWidth>
struct Packets {
    using Raw = Packet<kWidth>;
    static constexpr int kLoadedPiece = kLoads;
    static constexpr int kStoredPiece = kStores;
    // Pieces take more instructions, and registers that the other code needs.
    static constexpr int kBytesInFlight =
        kLoads == kWidth && kStores == kWidth ? device::kBytesInFlight : device::kBytesInFlight / 4;
};

/// Moves `count` packets: combines those of all sources in the given order and stores the result to
/// all targets. kMost bounds the number of sources; with fewer, more packets are in flight.
template <typename Width, int kMost, int kMostTargets, typename Reduction>
__device__ __forceinline__ void combine_packets(const ThreadGroup& group, const Sources& from,
                                                const Targets& to, std::size_t count,
                                                const Reduction& reduction) {
    using Raw = typename Width::Raw;
    constexpr int kWanted = Width::kBytesInFlight / (kMost * static_cast<int>(sizeof(Raw)));
    constexpr int kUnroll = kWanted < 1 ? 1 : (kWanted > 8 ? 8 : kWanted);
    const std::size_t stride = group.stride;
    for (std::size_t i = group.first; i < count; i += kUnroll * stride) {
        Raw packets[kUnroll][kMost];
#pragma unroll
        for (int u = 0; u < kUnroll; ++u)
#pragma unroll
            for (int k = 0; k < kMost; ++k)
                if (k < from.count && i + u * stride < count)
                    packets[u][k] = load_packet<Raw, Width::kLoadedPiece>(
                        from.at[k] + (i + u * stride) * sizeof(Raw));
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            if (i + u * stride >= count) break;
            Raw result = packets[u][0];
            if constexpr (!std::is_same_v<Reduction, FirstOnly>) {
                PackedElements<Reduction, Raw> sum(packets[u][0]);
#pragma unroll
                for (int k = 1; k < kMost; ++k)
                    if (k < from.count)
                        sum.combine(reduction, PackedElements<Reduction, Raw>(packets[u][k]));
                result = sum.finish(reduction);
            }
#pragma unroll
            for (int k = 0; k < kMostTargets; ++k)
                if (k < to.count)
                    store_packet<Raw, Width::kStoredPiece>(
                        to.at[k] + (i + u * stride) * sizeof(Raw), result);
        }
    }
}

}  // namespace pccl::kernels::device
