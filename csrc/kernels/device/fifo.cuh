// Ends of FIFOs between two ranks, as one lane of a program has them open.
#pragma once

#include "csrc/abi/device_program.h"
#include "csrc/kernels/device/sync.cuh"

namespace pccl::kernels::device {

/// Slots that `owner` has for FIFO `fifo` from `peer`.
__device__ __forceinline__ abi::DeviceSlots* slots_of(abi::DeviceDesk* owner, int peer, int fifo) {
    auto* const first = reinterpret_cast<abi::DeviceSlots*>(owner + 1);
    return first + static_cast<std::size_t>(peer) * abi::kDeviceFifos + fifo;
}

/// One thread at a time changes it.
class Port {
   public:
    /// Of FIFO `fifo` between `self` and the port's peer; `here` is the desk of `self`. False where
    /// the desks have not met.
    [[nodiscard]] __device__ bool open(const abi::DevicePort& port, int self, int fifo,
                                       abi::DeviceDesk* here, bool sends_words) {
        abi::DeviceDesk* const there = here->peers[port.peer];
        if (there == nullptr) return false;
        const auto counters_of = [sends_words](abi::DeviceFifo& each) -> abi::DeviceCounters& {
            return sends_words ? each.words : each.messages;
        };
        abi::DeviceCounters& own = counters_of(here->fifos[port.peer][fifo]);
        abi::DeviceCounters& theirs = counters_of(there->fifos[self][fifo]);
        const bool is_sending = port.is_sending != 0;
        peer_ = port.peer;
        kept_ = is_sending ? &own.sent : &own.taken;
        awaited_ = is_sending ? &own.emptied : &own.filled;
        told_ = is_sending ? &theirs.filled : &theirs.emptied;
        slots_ = is_sending ? slots_of(there, self, fifo) : slots_of(here, port.peer, fifo);
        count_ = *kept_;
        is_sending_ = is_sending;
        return true;
    }
    /// When the peer has taken all messages: from then on it stores nothing into this rank's
    /// memory. False when it gave up.
    [[nodiscard]] __device__ bool close(const abi::DeviceTeam& team) const {
        *kept_ = count_;
        return !is_sending_ || await_count(team, count_);
    }
    [[nodiscard]] __device__ int peer() const { return peer_; }

    /// Until the next message is here, or there is room for one. False when it gave up.
    [[nodiscard]] __device__ bool await(const abi::DeviceTeam& team) const {
        return await_count(team, is_sending_ ? abi::emptied_before(count_) : count_ + 1);
    }
    // Of the message that comes next; to be asked before it is passed on.
    [[nodiscard]] __device__ std::byte* slot() const {
        return slots_->messages[abi::slot_after(count_)];
    }
    [[nodiscard]] __device__ abi::Line* lines() const {
        return slots_->lines[abi::slot_after(count_)];
    }
    [[nodiscard]] __device__ std::uint32_t number() const { return number_after(count_); }

    /// The message has been put into the slot, or taken from it.
    __device__ void pass() { store_release(told_, ++count_); }
    /// The same of a message by words, which says itself that it is there.
    __device__ void pass_words() {
        ++count_;
        if (!is_sending_) store_relaxed(told_, count_);
    }

   private:
    [[nodiscard]] __device__ bool await_count(const abi::DeviceTeam& team,
                                              std::uint32_t wanted) const {
        return await_counter(team, abi::DevicePhase::kStep, awaited_, peer_, wanted);
    }

    std::uint32_t* kept_;
    const std::uint32_t* awaited_;
    std::uint32_t* told_;
    abi::DeviceSlots* slots_;
    std::uint32_t count_;
    std::int32_t peer_;
    bool is_sending_;
};

}  // namespace pccl::kernels::device
