// Waits of kernels, which end: when what is waited for has come, when it takes too long, when the
// host says so, and when a peer has called something else.
#pragma once

#include "csrc/abi/device_team.h"
#include "csrc/kernels/device/dissent.cuh"
#include "csrc/kernels/device/ptx.cuh"

namespace pccl::kernels::device {

/// Whether counter `seen` has reached `wanted`; both wrap.
__device__ __forceinline__ bool has_reached(std::uint32_t seen, std::uint32_t wanted) {
    return static_cast<std::int32_t>(seen - wanted) >= 0;
}

/// The number after `last`; 0 is what memory holds before the first line.
__device__ __forceinline__ std::uint32_t number_after(std::uint32_t last) {
    return last + 1 == 0 ? 1 : last + 1;
}

/// A rank that has not announced itself to this block, or else `peer`, which may only be waiting
/// for that one.
__device__ __noinline__ inline int absent_or(const abi::DeviceTeam& team, int peer) {
    const abi::Channel& channel = team.heaps[team.rank]->channels[blockIdx.x];
    for (int rank = 0; rank < team.size; ++rank) {
        const std::uint32_t seen = load_acquire(&channel.greetings[rank].output.low_epoch);
        if (!has_reached(seen, epoch_after(channel.epoch))) return rank;
    }
    return peer;
}

/// Leaves the record of the first wait that failed, and makes the other waits of this rank end.
__device__ __noinline__ inline void report(const abi::DeviceTeam& team, abi::DevicePhase phase,
                                           int peer, std::uint64_t expected, std::uint64_t seen) {
    const int dissenter = find_dissenter(team, phase);
    if (dissenter >= 0) {
        phase = abi::DevicePhase::kCall;
        peer = dissenter;
        say_what_was_called(team);
    } else if (phase == abi::DevicePhase::kStep) {
        peer = absent_or(team, peer);
    }
    abi::DeviceControl* control = team.control;
    const bool is_abort = load_system(&control->abort) != 0;
    if (atomicCAS(&team.heaps[team.rank]->fault_is_claimed, 0, 1) == 0) {
        control->fault.phase = phase;
        control->fault.rank = team.rank;
        control->fault.peer = peer;
        control->fault.block = blockIdx.x;
        control->fault.expected = expected;
        control->fault.seen = seen;
        control->fault.is_abort = is_abort ? 1 : 0;
        control->fault.ticket = team.ticket;
        if (dissenter >= 0) hear_what_was_called(team, dissenter, control->fault.theirs);
        store_release(&control->fault.is_set, 1);
    }
    store_relaxed(&control->abort, 1);
}

/// Tells a waiting thread when to give up. It asks about once a millisecond, by its own cycle
/// counter: the abort flag is in host memory, where warps read one after the other, 1 us each. When
/// all 256 warps of a launch asked sooner (after 256 polls, 0.2 ms) they came late to the next one,
/// whose peers then asked while they waited, and so on: 180 us for each call that takes 5. One
/// thread of a warp reads the flag, tells the host for whom it waits, and looks for a peer that has
/// called something else; when it gives up, the others therefore end one after the other.
class Patience {
   public:
    __device__ explicit Patience(const abi::DeviceTeam& team) : team_(team), asked_(cycles()) {}

    /// For what is waited now.
    __device__ bool is_over(abi::DevicePhase phase, int peer) {
        const std::uint32_t now = cycles();
        if (now - asked_ < kCyclesBetweenLooks) return false;
        asked_ = now;
        return look(phase, peer);
    }

   private:
    static constexpr std::uint32_t kCyclesBetweenLooks = 1U << 21;

    __device__ __noinline__ bool look(abi::DevicePhase phase, int peer) {
        const std::uint64_t now = global_timer_ns();
        if (started_ == 0) started_ = now;
        if (now - started_ > team_.timeout_ns) return true;
        const bool is_first_of_warp = threadIdx.x % 32 + 1 == __ffs(__activemask());
        if (!is_first_of_warp) return false;
        abi::LongWait& wait = team_.control->waits[static_cast<int>(phase)][peer];
        store_relaxed(&wait.ticket, team_.ticket);
        store_relaxed(&wait.waited_ns, now - started_);
        return load_system(&team_.control->abort) != 0 || find_dissenter(team_, phase) >= 0;
    }

    const abi::DeviceTeam& team_;
    std::uint32_t asked_;
    std::uint64_t started_ = 0;
};

/// What `peer` writes for others to wait for, in one place.
struct Mark {
    abi::DevicePhase phase;
    const std::uint32_t* at;
    int peer;
    std::uint32_t wanted;
};

/// Polls `mark` until it has_come(seen). False when it gave up.
template <typename HasCome>
__device__ __forceinline__ bool await_mark(const abi::DeviceTeam& team, const Mark& mark,
                                           HasCome has_come) {
    Patience patience(team);
    for (std::uint32_t seen = load_acquire(mark.at); !has_come(seen);
         seen = load_acquire(mark.at)) {
        if (!patience.is_over(mark.phase, mark.peer)) continue;
        report(team, mark.phase, mark.peer, mark.wanted, seen);
        return false;
    }
    return true;
}

/// Polls `counter`, which `peer` moves on one by one. False when it gave up.
__device__ __forceinline__ bool await_counter(const abi::DeviceTeam& team, abi::DevicePhase phase,
                                              const std::uint32_t* counter, int peer,
                                              std::uint32_t wanted) {
    return await_mark(team, {phase, counter, peer, wanted},
                      [wanted](std::uint32_t seen) { return has_reached(seen, wanted); });
}

}  // namespace pccl::kernels::device
