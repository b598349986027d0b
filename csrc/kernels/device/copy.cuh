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

    __device__ void be_only(Pointer place) {
        at[0] = place;
        count = 1;
    }
    /// The bits in which any address differs from `other`.
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
    /// The same places, so many bytes later.
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

/// A packet that begins at a multiple of kPiece: in pieces as long, where the packet is longer.
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

/// In place of a reduction: there is one source, which is passed on as it is, byte by byte at
/// worst.
struct FirstOnly {
    using Element = std::uint8_t;
};

/// Packets of one width, and the pieces in which they are loaded and stored.
template <int kWidth, int kLoads = kWidth, int kStores = kWidth>
struct Packets {
    using Raw = Packet<kWidth>;
    static constexpr int kLoadedPiece = kLoads;
    static constexpr int kStoredPiece = kStores;
    // Pieces take more instructions, and registers that the rest needs.
    static constexpr int kBytesInFlight =
        kLoads == kWidth && kStores == kWidth ? device::kBytesInFlight : device::kBytesInFlight / 4;
};

/// `count` packets: combines those of all sources, in the order given, and stores the result to all
/// targets. kMost bounds the number of sources; with fewer, more packets are in flight.
template <typename Width, int kMost, int kMostTargets, typename Reduction>
__device__ __forceinline__ void combine_packets(const Crew& crew, const Sources& from,
                                                const Targets& to, std::size_t count,
                                                const Reduction& reduction) {
    using Raw = typename Width::Raw;
    constexpr int kWanted = Width::kBytesInFlight / (kMost * static_cast<int>(sizeof(Raw)));
    constexpr int kUnroll = kWanted < 1 ? 1 : (kWanted > 8 ? 8 : kWanted);
    const std::size_t stride = crew.stride;
    for (std::size_t i = crew.first; i < count; i += kUnroll * stride) {
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
                Lanes<Reduction, Raw> sum(packets[u][0]);
#pragma unroll
                for (int k = 1; k < kMost; ++k)
                    if (k < from.count)
                        sum.combine(reduction, Lanes<Reduction, Raw>(packets[u][k]));
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

/// Whole packets of 16 bytes that begin at multiples of 16, within some bytes.
struct Middle {
    std::size_t begin;
    std::size_t bytes;

    __device__ Middle(std::uintptr_t address, std::size_t whole)
        : begin(min(whole, static_cast<std::size_t>(-address % 16))),
          bytes((whole - begin) / 16 * 16) {}
    [[nodiscard]] __device__ std::size_t packets() const { return bytes / 16; }
};

/// What `whole` bytes have before and behind a middle: one element a thread. It is less than a
/// packet on either side, 30 bytes at most, and a crew has a warp at least.
template <int kMost, int kMostTargets, typename Reduction>
__device__ __forceinline__ void combine_ends(const Crew& crew, const Sources& from,
                                             const Targets& to, const Middle& middle,
                                             std::size_t whole, const Reduction& reduction) {
    constexpr std::size_t kElement = sizeof(typename Reduction::Element);
    const std::size_t index = crew.first * kElement;
    if (index >= whole - middle.bytes) return;
    const std::size_t at = index < middle.begin ? index : index + middle.bytes;
    combine_packets<Packets<kElement>, kMost, kMostTargets>({0, 1}, from.behind(at), to.behind(at),
                                                            1, reduction);
}

__device__ __forceinline__ bool are_aligned(const Sources& from, const Targets& to) {
    return (from.differences(0) | to.differences(0)) % 16 == 0;
}

template <int kMost, int kMostTargets, typename Reduction>
__device__ __forceinline__ void combine_aligned(const Crew& crew, const Sources& from,
                                                const Targets& to, std::size_t bytes,
                                                const Reduction& reduction) {
    const Middle all(0, bytes);
    combine_packets<Packets<16>, kMost, kMostTargets>(crew, from, to, all.packets(), reduction);
    combine_ends<kMost, kMostTargets>(crew, from, to, all, bytes, reduction);
}

template <int kMost, int kMostTargets, typename Reduction>
__device__ __forceinline__ void combine_elements(const Crew& crew, const Sources& from,
                                                 const Targets& to, std::size_t bytes,
                                                 const Reduction& reduction) {
    constexpr int kElement = sizeof(typename Reduction::Element);
    combine_packets<Packets<kElement>, kMost, kMostTargets>(crew, from, to, bytes / kElement,
                                                            reduction);
}

/// Packets in the middle if the sources at least are equally far from a multiple of 16, else one
/// element at a time. Apart from the rest, which it would slow down.
template <int kMost, int kMostTargets, typename Reduction>
__device__ __noinline__ void combine_unaligned(Crew crew, const Sources& from, const Targets& to,
                                               std::size_t bytes, Reduction reduction) {
    constexpr int kElement = sizeof(typename Reduction::Element);
    const std::uintptr_t first = from.first_address();
    if (from.differences(first) % 16 != 0)
        return combine_elements<kMost, kMostTargets>(crew, from, to, bytes, reduction);
    const Middle middle(first, bytes);
    const Sources sources = from.behind(middle.begin);
    const Targets targets = to.behind(middle.begin);
    if (to.differences(first) % 16 == 0) {
        combine_packets<Packets<16>, kMost, kMostTargets>(crew, sources, targets, middle.packets(),
                                                          reduction);
    } else {
        combine_packets<Packets<16, 16, kElement>, kMost, kMostTargets>(
            crew, sources, targets, middle.packets(), reduction);
    }
    combine_ends<kMost, kMostTargets>(crew, from, to, middle, bytes, reduction);
}

/// `bytes` from the sources, combined, to all targets. Once in a kernel: in a loop, the call within
/// would take registers that the loop needs.
template <int kMost, int kMostTargets = abi::kMostDevices, typename Reduction>
__device__ __forceinline__ void combine_bytes(const Crew& crew, const Sources& from,
                                              const Targets& to, std::size_t bytes,
                                              const Reduction& reduction) {
    if (are_aligned(from, to))
        return combine_aligned<kMost, kMostTargets>(crew, from, to, bytes, reduction);
    const Sources sources = from;
    const Targets targets = to;
    combine_unaligned<kMost, kMostTargets>(crew, sources, targets, bytes, reduction);
}

/// The same, wherever; slow where addresses are no multiples of 16.
template <int kMost, int kMostTargets, typename Reduction>
__device__ __forceinline__ void combine_bytes_in_loop(const Crew& crew, const Sources& from,
                                                      const Targets& to, std::size_t bytes,
                                                      const Reduction& reduction) {
    if (are_aligned(from, to)) {
        combine_aligned<kMost, kMostTargets>(crew, from, to, bytes, reduction);
    } else {
        combine_elements<kMost, kMostTargets>(crew, from, to, bytes, reduction);
    }
}

/// The middle of a copy: the targets, which are the peers', get whole packets.
template <int kLoads, int kMostTargets>
__device__ __forceinline__ void copy_middle(const Crew& crew, const Sources& from,
                                            const Targets& to, const Middle& middle) {
    combine_packets<Packets<16, kLoads>, 1, kMostTargets>(
        crew, from.behind(middle.begin), to.behind(middle.begin), middle.packets(), FirstOnly{});
}

/// `bytes` from one place to all targets: packets if the targets are equally far from a multiple of
/// 16, in pieces as long as the source's address allows.
template <int kMostTargets = abi::kMostDevices>
__device__ __forceinline__ void copy_bytes(const Crew& crew, const std::byte* source,
                                           const Targets& to, std::size_t bytes) {
    Sources from{};
    from.be_only(source);
    if (are_aligned(from, to))
        return combine_aligned<1, kMostTargets>(crew, from, to, bytes, FirstOnly{});
    const std::uintptr_t first = to.first_address();
    if (to.differences(first) % 16 != 0)
        return combine_elements<1, kMostTargets>(crew, from, to, bytes, FirstOnly{});
    const Middle middle(first, bytes);
    const std::uintptr_t differences = from.differences(first);
    if (differences % 16 == 0) {
        copy_middle<16, kMostTargets>(crew, from, to, middle);
    } else if (differences % 4 == 0) {
        copy_middle<4, kMostTargets>(crew, from, to, middle);
    } else if (differences % 2 == 0) {
        copy_middle<2, kMostTargets>(crew, from, to, middle);
    } else {
        copy_middle<1, kMostTargets>(crew, from, to, middle);
    }
    combine_ends<1, kMostTargets>(crew, from, to, middle, bytes, FirstOnly{});
}

__device__ __forceinline__ void copy_bytes(const Crew& crew, const std::byte* from, std::byte* to,
                                           std::size_t bytes) {
    Targets target{};
    target.be_only(to);
    copy_bytes<1>(crew, from, target, bytes);
}

}  // namespace pccl::kernels::device
