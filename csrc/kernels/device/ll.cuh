// SPDX-License-Identifier: Apache-2.0

// LL, for small messages: every thread sends one word of 8 bytes to each peer and receives one from
// each. Words carry their epochs (abi::LLLine), so no flag and no fence are necessary.
//
// All polls are in flight together: polling one peer after another takes half as much time again.
#pragma once

#include "csrc/kernels/device/epoch_scope.cuh"
#include "csrc/kernels/device/reduce.cuh"

namespace pccl::kernels::device {

using Word = std::uint64_t;
inline constexpr std::size_t kWordBytes = sizeof(Word);
static_assert(kWordBytes == abi::kLLDataBytes);

// Loads a word byte by byte, where it is unaligned or the last one is partial. It is not inlined,
// to keep the code beside it short: a block begins a launch with a cold instruction cache.
__device__ __noinline__ inline Word load_word_slowly(const std::byte* from, std::size_t bytes) {
    Word word = 0;
#pragma unroll 1
    for (std::size_t i = 0; i < bytes; ++i) word |= static_cast<Word>(from[i]) << (8 * i);
    return word;
}
__device__ __noinline__ inline void store_word_slowly(std::byte* to, std::size_t bytes, Word word) {
#pragma unroll 1
    for (std::size_t i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(word >> (8 * i));
}

/// Loads bytes [at, at + 8) of a buffer of `bytes`; zeros beyond its end.
__device__ __forceinline__ Word load_word(const std::byte* buffer, std::size_t at,
                                          std::size_t bytes) {
    const std::byte* from = buffer + at;
    if (reinterpret_cast<std::uintptr_t>(from) % kWordBytes == 0 && at + kWordBytes <= bytes)
        return *reinterpret_cast<const Word*>(from);
    return at < bytes ? load_word_slowly(from, min(kWordBytes, bytes - at)) : 0;
}

__device__ __forceinline__ void store_word(std::byte* buffer, std::size_t at, std::size_t bytes,
                                           Word word) {
    std::byte* to = buffer + at;
    if (reinterpret_cast<std::uintptr_t>(to) % kWordBytes == 0 && at + kWordBytes <= bytes) {
        *reinterpret_cast<Word*>(to) = word;
        return;
    }
    if (at < bytes) store_word_slowly(to, min(kWordBytes, bytes - at), word);
}

/// Words that a thread received, by sender, with its own among them.
using Words = Word[abi::kMostDevices];

/// Sends word_for(peer) to every peer, as line threadIdx.x.
template <typename WordFor>
__device__ __forceinline__ void send_ll(const abi::DeviceTeam& team, const EpochScope& scope,
                                        WordFor word_for) {
#pragma unroll
    for (int step = 1; step < abi::kMostDevices; ++step) {
        if (step >= team.size) break;
        const int peer = (team.rank + step) % team.size;
        store_line(scope.lines(peer, team.rank) + threadIdx.x, scope.line_of(word_for(peer)));
    }
}

/// Receives the peers' words; words[team.rank] is `own`. False when a peer's word did not arrive.
__device__ __forceinline__ bool receive_ll(const abi::DeviceTeam& team, const EpochScope& scope,
                                           Word own, Words& words) {
    const abi::LLLine* const first = scope.lines(team.rank, 0) + threadIdx.x;
    WaitDeadline deadline(team);
    for (;;) {
        int missing = -1;
        std::uint32_t seen = 0;
        abi::LLLine lines[abi::kMostDevices];
#pragma unroll
        for (int peer = 0; peer < abi::kMostDevices; ++peer)
            if (peer < team.size) lines[peer] = load_line(first + peer * abi::kLLLinesPerBlock);
#pragma unroll
        for (int peer = 0; peer < abi::kMostDevices; ++peer) {
            if (peer >= team.size) continue;
            words[peer] = peer == team.rank ? own : EpochScope::data_of(lines[peer]);
            if (peer == team.rank || scope.is_here(lines[peer])) continue;
            missing = peer;
            seen = lines[peer].low_epoch;
        }
        if (missing < 0) return true;
        if (!deadline.is_over(abi::DevicePhase::kData, missing)) continue;
        deadline.give_up({abi::DevicePhase::kData, missing, scope.epoch(), seen});
        return false;
    }
}

template <typename Reduction>
__device__ __forceinline__ Word combine_words(Word a, Word b, const Reduction& reduction) {
    PackedElements<Reduction, Word> sum(a);
    sum.combine(reduction, PackedElements<Reduction, Word>(b));
    return sum.finish(reduction);
}

/// Reduces in rank order, so that all ranks get the same bits.
template <typename Reduction>
__device__ Word combine_words(const abi::DeviceTeam& team, const Words& words,
                              const Reduction& reduction) {
    PackedElements<Reduction, Word> sum(words[0]);
#pragma unroll
    for (int peer = 1; peer < abi::kMostDevices; ++peer)
        if (peer < team.size) sum.combine(reduction, PackedElements<Reduction, Word>(words[peer]));
    return sum.finish(reduction);
}

}  // namespace pccl::kernels::device
