// SPDX-License-Identifier: Apache-2.0

// Waits of kernels. A wait ends when its condition is met, on timeout, when the host aborts, and
// when a peer runs another call or has given up itself.
#pragma once

#include "csrc/abi/device_team.h"
#include "csrc/kernels/device/counters.cuh"
#include "csrc/kernels/device/mismatch.cuh"
#include "csrc/kernels/device/ptx.cuh"
#include "csrc/kernels/device/slowly.cuh"

namespace pccl::kernels::device {

inline constexpr int kWarpThreads = 32;
inline constexpr unsigned kWholeWarp = ~0U;  // as a mask

/// Returns a rank that has not announced itself to this block, otherwise `peer`, which may itself
/// wait for a missing rank.
__device__ __noinline__ inline int absent_or(const abi::DeviceTeam& team, int peer) {
    const abi::BlockChannel& channel = team.heaps[team.rank]->channels[blockIdx.x];
#pragma unroll 1
    for (int rank = 0; rank < team.size; ++rank) {
        const std::uint32_t seen = load_acquire(&channel.entries[rank].output.low_epoch);
        if (!has_reached(seen, epoch_after(channel.epoch))) return rank;
    }
    return peer;
}

/// A failed wait: the expected value and the one that was there.
struct Failure {
    abi::DevicePhase phase;
    int peer;
    std::uint64_t expected;
    std::uint64_t seen;
};

/// Returns true once per rank, for the thread that reports why it has given up.
__device__ __forceinline__ bool claim_fault(const abi::DeviceTeam& team) {
    return atomicCAS(&team.heaps[team.rank]->fault_is_claimed, 0, 1) == 0;
}

/// Publishes the fault in this rank's heap to its host and to the peers' kernels, which stop as
/// well, since the hosts may be waiting for the GPUs. After a host's abort the peers are not
/// notified: their hosts have received the reason. Ends the other waits of this rank.
__device__ __noinline__ inline void publish_fault(const abi::DeviceTeam& team) {
    const abi::DeviceFault& fault = team.heaps[team.rank]->fault;
    copy_slowly(team.control->fault, fault);
    store_release(&team.control->has_given_up, 1);
    if (fault.is_abort != 0) return;
#pragma unroll 1
    for (int peer = 0; peer < team.size; ++peer)
        if (peer != team.rank) store_release(&team.heaps[peer]->has_aborted[team.rank], 1);
}

/// Records the first failed wait and ends the other waits of this rank.
__device__ __noinline__ inline void report(const abi::DeviceTeam& team, const Failure& failure) {
    const bool is_abort = load_system(&team.control->abort) != 0;
    if (claim_fault(team)) {
        abi::DeviceFault& fault = team.heaps[team.rank]->fault;
        fault.phase = failure.phase;
        fault.rank = team.rank;
        fault.peer = failure.peer;
        fault.block = blockIdx.x;
        fault.expected = failure.expected;
        fault.seen = failure.seen;
        fault.is_abort = is_abort ? 1 : 0;
        fault.ticket = team.ticket;
        if (failure.phase == abi::DevicePhase::kCall) {
            copy_slowly(fault.ours, team.call);
            read_call(team, failure.peer, fault.theirs);
        }
        publish_fault(team);
    }
    store_relaxed(&team.control->abort, 1);
}

/// Returns a peer that has given up; -1 where none has.
__device__ __noinline__ inline int find_aborted_peer(const abi::DeviceTeam& team) {
    const abi::Heap& own = *team.heaps[team.rank];
    unsigned aborted_peers = 0;
#pragma unroll 1
    for (int peer = 0; peer < team.size; ++peer)
        if (load_acquire(&own.has_aborted[peer]) != 0) aborted_peers |= 1U << peer;
    return __ffs(aborted_peers) - 1;
}

/// Records a peer's reason for giving up as this rank's.
__device__ __noinline__ inline void report_as(const abi::DeviceTeam& team, int aborted_peer) {
    if (claim_fault(team)) {
        abi::DeviceFault& fault = team.heaps[team.rank]->fault;
        copy_slowly(fault, team.heaps[aborted_peer]->fault);
        fault.ticket = team.ticket;
        publish_fault(team);
    }
    store_relaxed(&team.control->abort, 1);
}

/// Records that a peer has called something else.
__device__ __noinline__ inline void report_mismatch(const abi::DeviceTeam& team,
                                                    int mismatched_peer) {
    publish_call(team);
    report(team,
           {.phase = abi::DevicePhase::kCall, .peer = mismatched_peer, .expected = 0, .seen = 0});
}

/// Deadline of a waiting thread. It checks about once a millisecond, by its own cycle counter: the
/// abort flag is in host memory, where the reads of warps are serialised at 1 us each. When all 256
/// warps of a launch checked sooner (after 256 polls, 0.2 ms), they were late for the next launch,
/// whose peers then checked while they waited, and so on: a call took 180 us instead of 5. One
/// thread of a warp reads the flag, reports its wait to the host, and searches for a peer that has
/// called something else or given up. Therefore the threads of a warp give up one after the other.
class WaitDeadline {
   public:
    __device__ explicit WaitDeadline(const abi::DeviceTeam& team)
        : team_(team), checked_at_(cycles()) {}

    /// Returns whether to give up the present wait, for `peer` in `phase`.
    __device__ bool is_over(abi::DevicePhase phase, int peer) {
        const std::uint32_t now = cycles();
        if (now - checked_at_ < kCyclesBetweenLooks) return false;
        checked_at_ = now;
        return look(phase, peer);
    }

    /// Reports that this wait has failed, because of a mismatched peer where there was one: that
    /// peer may have taken back its lines by now.
    __device__ __noinline__ void give_up(Failure failure) const {
        const int mismatched_peer =
            mismatched_peer_ >= 0 ? mismatched_peer_ : find_mismatched_peer(team_, failure.phase);
        if (mismatched_peer >= 0) return report_mismatch(team_, mismatched_peer);
        if (const int aborted_peer = find_aborted_peer(team_); aborted_peer >= 0)
            return report_as(team_, aborted_peer);
        if (failure.phase == abi::DevicePhase::kStep) failure.peer = absent_or(team_, failure.peer);
        report(team_, failure);
    }

   private:
    static constexpr std::uint32_t kCyclesBetweenLooks = 1U << 21;

    __device__ __noinline__ bool look(abi::DevicePhase phase, int peer) {
        const std::uint64_t now = global_timer_ns();
        if (started_ == 0) started_ = now;
        if (now - started_ > team_.timeout_ns) return true;
        const bool is_first_of_warp = threadIdx.x % kWarpThreads + 1 == __ffs(__activemask());
        if (!is_first_of_warp) return false;
        abi::LongWait& wait = team_.control->waits[static_cast<int>(phase)][peer];
        store_relaxed(&wait.ticket, team_.ticket);
        store_relaxed(&wait.waited_ns, now - started_);
        if (load_system(&team_.control->abort) != 0) return true;
        mismatched_peer_ = find_mismatched_peer(team_, phase);
        return mismatched_peer_ >= 0 || find_aborted_peer(team_) >= 0;
    }

    const abi::DeviceTeam& team_;
    std::uint32_t checked_at_;
    int mismatched_peer_ = -1;
    std::uint64_t started_ = 0;
};

/// A counter that `peer` writes for other ranks to wait for.
struct Mark {
    abi::DevicePhase phase;
    const std::uint32_t* at;
    int peer;
    std::uint32_t wanted;
};

/// Polls `mark` until has_come(seen). False when it gave up.
template <typename HasCome>
__device__ __forceinline__ bool await_mark(const abi::DeviceTeam& team, const Mark& mark,
                                           HasCome has_come) {
    WaitDeadline deadline(team);
    for (std::uint32_t seen = load_acquire(mark.at); !has_come(seen);
         seen = load_acquire(mark.at)) {
        if (!deadline.is_over(mark.phase, mark.peer)) continue;
        deadline.give_up({mark.phase, mark.peer, mark.wanted, seen});
        return false;
    }
    return true;
}

/// Polls `counter`, which `peer` increments. False when it gave up.
__device__ __forceinline__ bool await_counter(const abi::DeviceTeam& team, abi::DevicePhase phase,
                                              const std::uint32_t* counter, int peer,
                                              std::uint32_t wanted) {
    return await_mark(team, {phase, counter, peer, wanted},
                      [wanted](std::uint32_t seen) { return has_reached(seen, wanted); });
}

}  // namespace pccl::kernels::device
