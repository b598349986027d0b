// SPDX-License-Identifier: Apache-2.0

// Withdrawal of a rank that gives up: no peer may access its tensors after its kernel has ended,
// since later work in its stream uses them for other purposes.
//
// The rank takes back its entry lines and notifies the others that it gives up (waits.cuh). A peer
// that has not arrived by then finds no address. A peer that has arrived had announced itself
// before it read the addresses, so the rank waits for it: until it exits, or gives up as well,
// which takes milliseconds where it waits for any rank. None of this costs time in successful
// launches.
#pragma once

#include "csrc/abi/device_team.h"
#include "csrc/kernels/device/numbered.cuh"
#include "csrc/kernels/device/ptx.cuh"

namespace pccl::kernels::device {

/// Longest flight of a store, with a large margin: NVLink takes microseconds.
inline constexpr std::uint64_t kLongestFlightNs = 1'000'000;
/// Longest time in which a peer finishes its access, unless it is dead or shares its GPU.
inline constexpr std::uint64_t kLongestStayNs = 2'000'000'000;

/// Waits until `is_in()` is false; stores in flight may still change it. False when that takes too
/// long: the host is then notified that `peer` may still access this rank's tensors.
template <typename IsIn>
__device__ bool await_exit(const abi::DeviceTeam& team, int peer, IsIn is_in) {
    constexpr unsigned kPauseNs = 1000;
    const std::uint64_t began = global_timer_ns();
    for (;;) {
        const std::uint64_t waited = global_timer_ns() - began;
        if (waited > kLongestFlightNs && !is_in()) return true;
        if (waited > kLongestStayNs) break;
        __nanosleep(kPauseNs);
    }
    store_relaxed(&team.control->in_doubt, static_cast<std::uint32_t>(peer) + 1);
    return false;
}

/// Takes back this rank's entry lines at `where`; they are gone on return.
__device__ __forceinline__ void take_back(abi::EntryLines& where) {
    __threadfence_system();  // behind this block's stores to the peer
    store_line(&where.input, abi::LLLine{});
    store_line(&where.output, abi::LLLine{});
    __threadfence_system();
}

/// Withdraws this block from `peer`'s block of the same index; one thread calls it. A peer in doubt
/// gets no result from its later loads: this rank has not exited for it.
__device__ __noinline__ inline void withdraw_from(const abi::DeviceTeam& team, std::uint32_t epoch,
                                                  int peer) {
    abi::BlockChannel& here = team.heaps[team.rank]->channels[blockIdx.x];
    abi::BlockChannel& there = team.heaps[peer]->channels[blockIdx.x];
    take_back(there.entries[team.rank]);
    const Numbered now(team, epoch, team.fingerprint);
    const auto is_in = [&] {
        return now.is_here(load_line(&here.entries[peer].output)) &&
               load_acquire(&here.exited[peer]) != epoch;
    };
    if (await_exit(team, peer, is_in)) return;
    store_relaxed(&there.exited[team.rank], 0);
    __threadfence_system();
}

}  // namespace pccl::kernels::device
