// Ends of FIFOs between two ranks, as one lane of a program has them open.
#pragma once

#include <type_traits>

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
    /// Of FIFO `fifo` between `self` and the port's peer, for messages of one form; `here` is the
    /// desk of `self`. False where the desks have not met.
    [[nodiscard]] __device__ bool open(const abi::DevicePort& port, int self, int fifo,
                                       abi::DeviceDesk* here, abi::MessageForm form) {
        const auto counters_of = [form](abi::DeviceFifo& each) -> abi::DeviceCounters& {
            return each.counters[static_cast<int>(form)];
        };
        abi::DeviceCounters& own = counters_of(here->fifos[port.peer][fifo]);
        const bool is_sending = port.is_sending != 0;
        peer_ = port.peer;
        is_sending_ = is_sending;
        kept_ = is_sending ? &own.sent : &own.taken;
        awaited_ = is_sending ? &own.emptied : &own.filled;
        // All three loads before any is waited for.
        abi::DeviceDesk* const there = here->peers[port.peer];
        count_ = *kept_;
        seen_ = form != abi::MessageForm::kPlain ? load_system(awaited_) : load_acquire(awaited_);
        if (there == nullptr) return false;
        abi::DeviceCounters& theirs = counters_of(there->fifos[self][fifo]);
        told_ = is_sending ? &theirs.filled : &theirs.emptied;
        slots_ = is_sending ? slots_of(there, self, fifo) : slots_of(here, port.peer, fifo);
        return true;
    }
    /// The peer may still have messages to take: it says so in the desk of `self`.
    __device__ void close() const { *kept_ = count_; }
    [[nodiscard]] __device__ int peer() const { return peer_; }

    /// Until the next message is here, or there is room for one. False when it gave up.
    [[nodiscard]] __device__ bool await(const abi::DeviceTeam& team) const {
        const std::uint32_t wanted = is_sending_ ? abi::emptied_before(count_) : count_ + 1;
        return has_reached(seen_, wanted) ||
               await_counter(team, abi::DevicePhase::kStep, awaited_, peer_, wanted);
    }
    // Of the message that comes next; to be asked before it is passed on.
    [[nodiscard]] __device__ std::byte* slot() const {
        return slots_->messages[abi::slot_after(count_)];
    }
    template <typename Line>
    [[nodiscard]] __device__ Line* lines() const {
        if constexpr (std::is_same_v<Line, abi::WideLine>) {
            return slots_->lines[abi::slot_after(count_)];
        } else {
            return slots_->words[abi::slot_after(count_)];
        }
    }
    [[nodiscard]] __device__ std::uint32_t number() const { return number_after(count_); }

    /// The message has been put into the slot, or taken from it.
    __device__ void pass() { store_release(told_, ++count_); }
    /// The same of a message that says itself that it is there.
    __device__ void pass_silently() {
        ++count_;
        if (!is_sending_) store_relaxed(told_, count_);
    }

   private:
    std::uint32_t* kept_;
    const std::uint32_t* awaited_;
    std::uint32_t* told_;
    abi::DeviceSlots* slots_;
    std::uint32_t count_;
    std::uint32_t seen_;  // at `awaited_`, on opening
    std::int32_t peer_;
    bool is_sending_;
};

}  // namespace pccl::kernels::device
