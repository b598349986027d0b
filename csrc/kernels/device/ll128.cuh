// SPDX-License-Identifier: Apache-2.0

// LL128, for messages of medium length: like LL lines, its lines (abi::LL128Line) need no separate
// fence and no flag. They carry 15 bytes of data for each byte of overhead.
//
// Eight threads write and read a line, 16 bytes each, in one instruction of their warp, so that it
// travels whole. The last of the eight has the line's number in its upper half. It handles one
// packet of data where the others handle two, and sends it in halves: eight threads and two lines
// carry 15 packets. Thus no packet, and no element, is shared between threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "csrc/abi/device_program.h"
#include "csrc/kernels/device/ll.cuh"
#include "csrc/kernels/device/ptx.cuh"
#include "csrc/kernels/device/reduce.cuh"
#include "csrc/kernels/device/waits.cuh"

namespace pccl::kernels::device {

inline constexpr std::size_t kPacketBytes = sizeof(uint4);

/// Returns the number of line pairs for a chunk.
[[nodiscard]] constexpr std::size_t pairs_for(std::size_t bytes) {
    return (bytes + abi::kPairBytes - 1) / abi::kPairBytes;
}

/// Loads bytes [at, at + 16) of a buffer of `bytes`; zeros beyond its end.
__device__ __forceinline__ uint4 load_packet_at(const std::byte* buffer, std::size_t at,
                                                std::size_t bytes) {
    const std::byte* from = buffer + at;
    if (reinterpret_cast<std::uintptr_t>(from) % kPacketBytes == 0 && at + kPacketBytes <= bytes)
        return *reinterpret_cast<const uint4*>(from);
    const Word words[2] = {load_word(buffer, at, bytes), load_word(buffer, at + kWordBytes, bytes)};
    uint4 packet;
    memcpy(&packet, words, sizeof packet);
    return packet;
}

__device__ __forceinline__ void store_packet_at(std::byte* buffer, std::size_t at,
                                                std::size_t bytes, const uint4& packet) {
    std::byte* to = buffer + at;
    if (reinterpret_cast<std::uintptr_t>(to) % kPacketBytes == 0 && at + kPacketBytes <= bytes) {
        *reinterpret_cast<uint4*>(to) = packet;
        return;
    }
    Word words[2];
    memcpy(words, &packet, sizeof packet);
    store_word(buffer, at, bytes, words[0]);
    store_word(buffer, at + kWordBytes, bytes, words[1]);
}

/// Places of a thread's packets of a pair in a chunk; beyond every end where it has none.
struct PairPlace {
    std::size_t at[2];
};

/// Packets of a pair that one thread carries.
struct PairPackets {
    uint4 packets[2];

    __device__ __forceinline__ void load(const std::byte* from, const PairPlace& place,
                                         std::size_t bytes) {
#pragma unroll
        for (int i = 0; i < 2; ++i)
            if (place.at[i] < bytes) packets[i] = load_packet_at(from, place.at[i], bytes);
    }
    __device__ __forceinline__ void store(std::byte* to, const PairPlace& place,
                                          std::size_t bytes) const {
#pragma unroll
        for (int i = 0; i < 2; ++i)
            if (place.at[i] < bytes) store_packet_at(to, place.at[i], bytes, packets[i]);
    }
    template <typename Reduction>
    __device__ __forceinline__ void combine(const PairPackets& other, const Reduction& reduction) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            PackedElements<Reduction, uint4> sum(packets[i]);
            sum.combine(reduction, PackedElements<Reduction, uint4>(other.packets[i]));
            packets[i] = sum.finish(reduction);
        }
    }
};

/// Line pair of a message that a thread waits for; unused where a chunk ends before it.
struct AwaitedPair {
    const abi::LL128Line* pair;
    bool is_sent;
    std::uint32_t number;
    int sender;
};

/// A thread's parts of the lines that its warp writes and reads. All threads of a warp call its
/// functions together.
class LL128Thread {
   public:
    __device__ LL128Thread()
        : pair(threadIdx.x % kWarpThreads / kThreadsPerLine),
          part_(threadIdx.x % kThreadsPerLine) {}

    /// Index among the pairs that the warp handles at once.
    const unsigned pair;

    [[nodiscard]] __device__ std::size_t first_pair() const {
        return threadIdx.x / kWarpThreads * kPairsOfWarp;
    }
    [[nodiscard]] __device__ std::size_t pairs_at_once() const {
        return blockDim.x / kThreadsPerLine;
    }
    [[nodiscard]] __device__ PairPlace place(std::size_t of_pair) const {
        const std::size_t begin = of_pair * abi::kPairBytes;
        if (is_last()) return {begin + 2 * kLast * kPacketBytes, ~std::size_t{0}};
        return {begin + part_ * kPacketBytes, begin + (kLast + part_) * kPacketBytes};
    }

    /// Sends a pair; `to` is null where this thread has none to send.
    __device__ __forceinline__ void send(const PairPackets& packets, abi::LL128Line* to,
                                         std::uint32_t number) const {
        uint4 pieces[2] = {packets.packets[0], packets.packets[1]};
        if (is_last()) {
            const uint4 whole = packets.packets[0];
            pieces[0] = {whole.x, whole.y, number, number};
            pieces[1] = {whole.z, whole.w, number, number};
        }
#pragma unroll
        for (int i = 0; i < 2; ++i)
            store_piece(to == nullptr ? nullptr : to + i, static_cast<int>(part_), pieces[i]);
    }

    /// Receives a pair. False, on all threads of the warp, when a line did not arrive.
    __device__ __forceinline__ bool receive(const abi::DeviceTeam& team, const AwaitedPair& awaited,
                                            PairPackets& got) const {
        WaitDeadline deadline(team);
        uint4 pieces[2]{};
        for (;;) {
            __syncwarp();
            const bool came = !awaited.is_sent || load_pair(awaited, pieces);
            if (__all_sync(kWholeWarp, came) != 0) break;
            const bool is_over = !came && deadline.is_over(abi::DevicePhase::kStep, awaited.sender);
            if (__any_sync(kWholeWarp, is_over) == 0) continue;
            if (is_over)
                deadline.give_up(
                    {abi::DevicePhase::kStep, awaited.sender, awaited.number, pieces[0].w});
            return false;
        }
        got = packets_of(pieces);
        return true;
    }

    /// Returns whether both have equal data, as far as this thread carries it.
    [[nodiscard]] __device__ bool are_alike(const PairPackets& one,
                                            const PairPackets& other) const {
        return is_equal(one.packets[0], other.packets[0]) &&
               (is_last() || is_equal(one.packets[1], other.packets[1]));
    }

   private:
    static __device__ bool is_equal(const uint4& one, const uint4& other) {
        return one.x == other.x && one.y == other.y && one.z == other.z && one.w == other.w;
    }

    static constexpr unsigned kThreadsPerLine = sizeof(abi::LL128Line) / kPacketBytes;
    static constexpr unsigned kLast = kThreadsPerLine - 1;
    static constexpr unsigned kPairsOfWarp = kWarpThreads / kThreadsPerLine;
    static_assert(2 * kLast + 1 == abi::kPairPackets);

    [[nodiscard]] __device__ bool is_last() const { return part_ == kLast; }

    [[nodiscard]] __device__ bool load_pair(const AwaitedPair& awaited, uint4 (&pieces)[2]) const {
        const bool first =
            load_piece(awaited.pair, static_cast<int>(part_), awaited.number, pieces[0]);
        const bool second =
            load_piece(awaited.pair + 1, static_cast<int>(part_), awaited.number, pieces[1]);
        return first && second;
    }
    [[nodiscard]] __device__ PairPackets packets_of(const uint4 (&pieces)[2]) const {
        if (!is_last()) return {{pieces[0], pieces[1]}};
        return {{{pieces[0].x, pieces[0].y, pieces[1].x, pieces[1].y}, {}}};
    }

    const unsigned part_;
};

}  // namespace pccl::kernels::device
