// SPDX-License-Identifier: Apache-2.0

// Moves of one chunk by a step of a schedule's program: plain, by LL, or by LL128.
#pragma once

#include "csrc/kernels/device/copy.cuh"
#include "csrc/kernels/device/fifo.cuh"
#include "csrc/kernels/device/ll.cuh"
#include "csrc/kernels/device/ll128.cuh"

namespace pccl::kernels::device {

/// Addresses of a chunk in this rank's memory: the operands and the result. Null where a step has
/// no such buffer.
struct LocalChunk {
    const std::byte* sources[2];
    std::byte* target;
    std::size_t bytes;
};

/// Combines or copies a plain chunk. Message slots take part where they are not null: `incoming` is
/// the last of at most two operands. All threads of the block call it.
template <typename Reduction>
__device__ __forceinline__ void move_bytes(const LocalChunk& chunk, const std::byte* incoming,
                                           std::byte* outgoing, const Reduction& reduction) {
    Sources from{};
    from.at[0] = chunk.sources[0] != nullptr ? chunk.sources[0] : incoming;
    from.at[1] = chunk.sources[1] != nullptr ? chunk.sources[1] : incoming;
    from.count = chunk.sources[0] != nullptr && from.at[1] != nullptr ? 2 : 1;
    Targets to{};
    to.at[0] = chunk.target != nullptr ? chunk.target : outgoing;
    to.at[1] = outgoing;
    to.count = (chunk.target != nullptr ? 1 : 0) + (outgoing != nullptr ? 1 : 0);
    if (from.count == 2) {
        combine_bytes_in_loop<2, 2>(block_group(), from, to, chunk.bytes, reduction);
    } else {
        copy_bytes<2>(block_group(), from.at[0], to, chunk.bytes);
    }
}

/// Lines of the LL or LL128 messages that a step receives and sends; null where there is none.
template <typename Line>
struct MessageLines {
    const Line* incoming = nullptr;
    Line* outgoing = nullptr;
    std::uint32_t received = 0;  // number of the message
    std::uint32_t sent = 0;
    int sender = 0;

    __device__ void skip(std::size_t lines) {
        if (incoming != nullptr) incoming += lines;
        if (outgoing != nullptr) outgoing += lines;
    }
};

/// Does the same by LL; every thread waits for its own lines. False when one did not arrive.
template <typename Reduction>
__device__ __forceinline__ bool move_by_ll(const abi::DeviceTeam& team, const LocalChunk& chunk,
                                           const MessageLines<abi::LLLine>& lines,
                                           const Reduction& reduction) {
    const Numbered received(team, lines.received);
    const Numbered sent(team, lines.sent);
    const auto bytes = static_cast<std::uint32_t>(chunk.bytes);  // a slot's at most
    for (std::uint32_t i = threadIdx.x; i * kWordBytes < bytes; i += blockDim.x) {
        const std::uint32_t at = i * static_cast<std::uint32_t>(kWordBytes);
        Word word = 0;
        if (chunk.sources[0] != nullptr) word = load_word(chunk.sources[0], at, bytes);
        if (chunk.sources[1] != nullptr)
            word = combine_words(word, load_word(chunk.sources[1], at, bytes), reduction);
        if (lines.incoming != nullptr) {
            Word got = 0;
            if (!received.await(lines.incoming + i, abi::DevicePhase::kStep, lines.sender, got))
                return false;
            word = chunk.sources[0] != nullptr ? combine_words(word, got, reduction) : got;
        }
        if (chunk.target != nullptr) store_word(chunk.target, at, bytes, word);
        if (lines.outgoing != nullptr) store_line(lines.outgoing + i, sent.line_of(word));
    }
    return true;
}

/// Does the same by LL128; every warp waits for its own lines.
template <typename Reduction>
__device__ __forceinline__ bool move_by_ll128(const abi::DeviceTeam& team, const LocalChunk& chunk,
                                              const MessageLines<abi::LL128Line>& lines,
                                              const Reduction& reduction) {
    const LL128Thread thread;
    const std::size_t pairs = pairs_for(chunk.bytes);
    for (std::size_t first = thread.first_pair(); first < pairs; first += thread.pairs_at_once()) {
        const std::size_t pair = first + thread.pair;
        const PairPlace place = thread.place(pair);
        PairPackets packets{};
        if (chunk.sources[0] != nullptr) packets.load(chunk.sources[0], place, chunk.bytes);
        if (chunk.sources[1] != nullptr) {
            PairPackets other{};
            other.load(chunk.sources[1], place, chunk.bytes);
            packets.combine(other, reduction);
        }
        if (lines.incoming != nullptr) {
            const AwaitedPair awaited{lines.incoming + 2 * pair, pair < pairs, lines.received,
                                      lines.sender};
            PairPackets got{};
            if (!thread.receive(team, awaited, got)) return false;
            if (chunk.sources[0] != nullptr) {
                packets.combine(got, reduction);
            } else {
                packets = got;
            }
        }
        if (chunk.target != nullptr) packets.store(chunk.target, place, chunk.bytes);
        if (lines.outgoing != nullptr)
            thread.send(packets, pair < pairs ? lines.outgoing + 2 * pair : nullptr, lines.sent);
    }
    return true;
}

}  // namespace pccl::kernels::device
