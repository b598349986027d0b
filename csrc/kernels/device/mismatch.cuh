// SPDX-License-Identifier: Apache-2.0

// Mismatch detection: whether a peer's call differs from this rank's. The peer's lines show it:
// they have another fingerprint, or lie where this rank's own kernel sends none. Kernels check only
// in long waits.
#pragma once

#include "csrc/abi/device_team.h"
#include "csrc/kernels/device/counters.cuh"
#include "csrc/kernels/device/ptx.cuh"
#include "csrc/kernels/device/slowly.cuh"

namespace pccl::kernels::device {

/// Returns whether `line` is a whole line of `epoch` with another fingerprint than this rank's
/// call.
__device__ __forceinline__ bool is_of_another_call(const abi::DeviceTeam& team,
                                                   const abi::LLLine& line, std::uint32_t epoch) {
    constexpr std::uint32_t kBelowFingerprint = 0xFFFF;
    const std::uint32_t fingerprint = line.high_epoch ^ epoch;
    return line.low_epoch == epoch && (fingerprint & kBelowFingerprint) == 0 &&
           fingerprint != team.fingerprint;
}

/// Returns whether `peer` runs another call, by its lines to this block, which waits in `phase`.
__device__ __forceinline__ bool has_mismatch(const abi::DeviceTeam& team, int peer,
                                             abi::DevicePhase phase) {
    const abi::Heap& own = *team.heaps[team.rank];
    const abi::BlockChannel& channel = own.channels[blockIdx.x];
    const std::uint32_t epoch = epoch_after(channel.epoch);
    const bool sends_ll = phase == abi::DevicePhase::kData;
    const abi::LLLine entry = load_line(&channel.entries[peer].output);
    if (is_of_another_call(team, entry, epoch)) return true;
    if (sends_ll && entry.low_epoch == epoch) return true;
    if (blockIdx.x >= abi::kMostLLBlocks) return false;
    const abi::LLLine word = load_line(own.buffers[blockIdx.x].lines[epoch & 1][peer]);
    return is_of_another_call(team, word, epoch) || (!sends_ll && word.low_epoch == epoch);
}

/// Returns a peer that runs another call; -1 where none is found, or where `phase` belongs to
/// messages, which are independent of calls, or comes after all ranks have agreed.
__device__ __noinline__ inline int find_mismatched_peer(const abi::DeviceTeam& team,
                                                        abi::DevicePhase phase) {
    const bool is_before_agreement = phase == abi::DevicePhase::kEntry ||
                                     phase == abi::DevicePhase::kData ||
                                     phase == abi::DevicePhase::kStep;
    if (!is_before_agreement) return -1;
#pragma unroll 1
    for (int peer = 0; peer < team.size; ++peer)
        if (peer != team.rank && has_mismatch(team, peer, phase)) return peer;
    return -1;
}

inline constexpr std::uint32_t kIsPublished = 2;

/// Publishes this rank's call, once: later calls end with an error, too.
__device__ __forceinline__ void publish_call(const abi::DeviceTeam& team) {
    abi::Heap* const own = team.heaps[team.rank];
    if (atomicCAS(&own->has_called, 0, 1) != 0) return;
    copy_slowly(own->called, team.call);
    store_release(&own->has_called, kIsPublished);
}

/// Reads the call of a mismatched peer. `called` is unchanged where the peer does not publish it
/// within a second. A peer publishes when it detects the mismatch: about a millisecond after both
/// have arrived, later where ranks share a GPU.
__device__ __forceinline__ void read_call(const abi::DeviceTeam& team, int mismatched_peer,
                                          abi::CollectiveHeader& called) {
    constexpr std::uint64_t kLongestNs = 1'000'000'000;
    const abi::Heap* const there = team.heaps[mismatched_peer];
    const std::uint64_t began = global_timer_ns();
    while (load_acquire(&there->has_called) != kIsPublished)
        if (global_timer_ns() - began > kLongestNs) return;
    copy_slowly(called, there->called);
}

}  // namespace pccl::kernels::device
