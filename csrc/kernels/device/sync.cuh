// How the blocks of one index meet on all ranks: epochs, greetings, departures, and waits that end.
#pragma once

#include "csrc/abi/device_team.h"
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

/// The epoch after `last`: of the other parity, since lines alternate between two places.
__device__ __forceinline__ std::uint32_t epoch_after(std::uint32_t last) {
    return last + 1 == 0 ? 2 : last + 1;
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
    if (phase == abi::DevicePhase::kStep) peer = absent_or(team, peer);
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
        store_release(&control->fault.is_set, 1);
    }
    store_relaxed(&control->abort, 1);
}

/// Tells a waiting thread when to give up. It asks about once a millisecond, by its own cycle
/// counter: the abort flag is in host memory, where warps read one after the other, 1 us each. When
/// all 256 warps of a launch asked sooner (after 256 polls, 0.2 ms) they came late to the next one,
/// whose peers then asked while they waited, and so on: 180 us for each call that takes 5. One
/// thread of a warp reads the flag, and tells the host for whom it waits; on an abort the others
/// therefore end one after the other.
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
        return load_system(&team_.control->abort) != 0;
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

/// Lines that carry one number: that of an epoch, or of a message.
class Numbered {
   public:
    __device__ Numbered(const abi::DeviceTeam& team, std::uint32_t number)
        : team_(team), number_(number) {}

    [[nodiscard]] __device__ std::uint32_t number() const { return number_; }
    [[nodiscard]] __device__ abi::Line line_of(std::uint64_t data) const {
        return {static_cast<std::uint32_t>(data), number_, static_cast<std::uint32_t>(data >> 32),
                number_};
    }
    [[nodiscard]] __device__ bool is_here(const abi::Line& line) const {
        return line.low_epoch == number_ && line.high_epoch == number_;
    }
    static __device__ std::uint64_t data_of(const abi::Line& line) {
        return line.low | static_cast<std::uint64_t>(line.high) << 32;
    }

    /// What `peer` says in both lines of `greeting`. False when it gave up.
    struct Said {
        std::uint64_t input;
        std::uint64_t output;
    };
    __device__ bool await(const abi::Greeting* greeting, abi::DevicePhase phase, int peer,
                          Said& said) const {
        return await(&greeting->input, phase, peer, said.input) &&
               await(&greeting->output, phase, peer, said.output);
    }
    /// What `peer` says in one line.
    __device__ bool await(const abi::Line* at, abi::DevicePhase phase, int peer,
                          std::uint64_t& data) const {
        Patience patience(team_);
        abi::Line line = load_line(at);
        for (; !is_here(line); line = load_line(at)) {
            if (!patience.is_over(phase, peer)) continue;
            report(team_, phase, peer, number_, line.low_epoch);
            return false;
        }
        data = data_of(line);
        return true;
    }

   private:
    const abi::DeviceTeam& team_;
    std::uint32_t number_;
};

/// One launch of one block, from its epoch's beginning to its end. All threads construct it.
class Visit : public Numbered {
   public:
    __device__ explicit Visit(const abi::DeviceTeam& team)
        : Visit(team, &team.heaps[team.rank]->channels[blockIdx.x]) {}

    [[nodiscard]] __device__ std::uint32_t epoch() const { return number(); }

    /// Where `sender` puts this epoch's lines for `receiver`.
    [[nodiscard]] __device__ abi::Line* lines(int receiver, int sender) const {
        return team_.heaps[receiver]->buffers[blockIdx.x].lines[epoch() & 1][sender];
    }

    struct Addresses {
        const std::byte* inputs[abi::kMostDevices];
        std::byte* outputs[abi::kMostDevices];
    };
    /// Says where this rank's tensors are, and learns where the peers' are. What the peers' streams
    /// held before this launch is visible afterwards to loads at system scope. False, on all
    /// threads, when a peer did not come. Before the next launch greets there, depart(): greetings
    /// have room for one epoch.
    [[nodiscard]] __device__ bool greet(const abi::Postings& postings, Addresses& shared) const {
        announce(postings);
        return meet(shared);
    }
    /// The first half of it, which waits for nobody. Who does no more than this, and see_all() at
    /// the end, may leave while others are still here; they must not need its greeting by then.
    __device__ void announce(const abi::Postings& postings) const {
        const int peer = static_cast<int>(threadIdx.x);
        if (peer >= team_.size) return;
        store_line(&own_greeting_at(peer).input, line_of(postings.inputs[peer]));
        store_line(&own_greeting_at(peer).output, line_of(postings.outputs[peer]));
    }
    /// All peers have announced themselves, or have left even, and are in the next epoch: not in a
    /// later one, which needs this rank.
    __device__ void see_all() const {
        const int peer = static_cast<int>(threadIdx.x);
        if (peer >= team_.size) return;
        const std::uint32_t now = epoch();
        await_mark(
            team_,
            {abi::DevicePhase::kGreeting, &channel_->greetings[peer].output.low_epoch, peer, now},
            [now](std::uint32_t seen) { return seen == now || seen == epoch_after(now); });
    }
    /// Returns when all peers have finished with this rank's tensors. With kRelease, what this
    /// block stored into theirs is visible to whatever follows in their streams.
    enum class Stores { kNone, kRelease };
    __device__ void depart(Stores stores) const {
        __syncthreads();
        const int peer = static_cast<int>(threadIdx.x);
        if (peer >= team_.size) return;
        std::uint32_t* there = &team_.heaps[peer]->channels[blockIdx.x].departed[team_.rank];
        if (stores == Stores::kRelease) {
            store_release(there, epoch());
        } else {
            store_relaxed(there, epoch());
        }
        // Not "at least": what a peer left there long ago may look so, once epochs have wrapped.
        const std::uint32_t now = epoch();
        await_mark(team_, {abi::DevicePhase::kDeparture, &channel_->departed[peer], peer, now},
                   [now](std::uint32_t seen) { return seen == now; });
    }

    /// Ends the epoch; to be called by all threads, after their last wait.
    __device__ void end() const {
        __syncthreads();
        if (threadIdx.x == 0) channel_->epoch = epoch();
    }

   private:
    [[nodiscard]] __device__ bool meet(Addresses& shared) const {
        const int peer = static_cast<int>(threadIdx.x);
        bool came = true;
        if (peer < team_.size) {
            const abi::Greeting* here = &channel_->greetings[peer];
            Said said{};
            came = await(here, abi::DevicePhase::kGreeting, peer, said);
            shared.inputs[peer] = reinterpret_cast<const std::byte*>(said.input);
            shared.outputs[peer] = reinterpret_cast<std::byte*>(said.output);
        }
        if (__syncthreads_and(came) != 0) return true;
        withdraw();
        return false;
    }

    /// Takes back what announce() said: who comes later must not touch this rank's tensors.
    __device__ void withdraw() const {
        const int peer = static_cast<int>(threadIdx.x);
        if (peer >= team_.size) return;
        store_line(&own_greeting_at(peer).input, abi::Line{});
        store_line(&own_greeting_at(peer).output, abi::Line{});
    }
    [[nodiscard]] __device__ abi::Greeting& own_greeting_at(int peer) const {
        return team_.heaps[peer]->channels[blockIdx.x].greetings[team_.rank];
    }

    __device__ Visit(const abi::DeviceTeam& team, abi::Channel* channel)
        : Numbered(team, epoch_after(channel->epoch)), team_(team), channel_(channel) {}

    const abi::DeviceTeam& team_;
    abi::Channel* channel_;
};

}  // namespace pccl::kernels::device
