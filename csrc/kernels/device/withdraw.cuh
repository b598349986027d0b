// How a rank that gives up leaves: no peer may touch its tensors once its kernel has ended, since
// what follows in its stream uses them for something else.
//
// It takes back where they are, and tells the others that it gives up (waits.cuh). Who has not come
// so far then finds nothing to touch. Who has come had said so before it looked where the tensors
// are, so it is awaited: until it exits, or gives up as well, which it does within milliseconds
// where it waits for anybody. Nothing of this costs those who do not give up.
#pragma once

#include "csrc/abi/device_team.h"
#include "csrc/kernels/device/numbered.cuh"
#include "csrc/kernels/device/ptx.cuh"

namespace pccl::kernels::device {

/// No store is longer on its way than that: NVLink takes microseconds.
inline constexpr std::uint64_t kLongestFlightNs = 1'000'000;
/// Nor does a peer need longer to end what it has begun, unless it is dead or shares its GPU.
inline constexpr std::uint64_t kLongestStayNs = 2'000'000'000;

/// Waits until `is_in()` is false, which what was on its way might have changed. False when that
/// takes too long: then the host hears that `peer` may still touch this rank's tensors.
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

/// Takes back entry lines that `where` had room for, and is gone when this returns.
__device__ __forceinline__ void take_back(abi::EntryLines& where) {
    __threadfence_system();  // behind what this block has stored at the peer
    store_line(&where.input, abi::LLLine{});
    store_line(&where.output, abi::LLLine{});
    __threadfence_system();
}

/// Of this block, for `peer`'s block of the same index; by one thread. A peer that is in doubt gets
/// no result from what it still loads: this rank has not exited for it.
__device__ __noinline__ inline void withdraw_from(const abi::DeviceTeam& team, std::uint32_t epoch,
                                                  int peer) {
    abi::Channel& here = team.heaps[team.rank]->channels[blockIdx.x];
    abi::Channel& there = team.heaps[peer]->channels[blockIdx.x];
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
