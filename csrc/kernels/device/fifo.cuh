// Ends of FIFOs between two ranks, as one lane of a program has them open.
#pragma once

#include <type_traits>

#include "csrc/abi/device_program.h"
#include "csrc/kernels/device/epoch_scope.cuh"

namespace pccl::kernels::device {

/// Slots that `owner` has for FIFO `fifo` from `peer`.
__device__ __forceinline__ abi::DeviceSlots* slots_of(abi::DeviceProgramState* owner, int peer,
                                                      int fifo) {
    auto* const first = reinterpret_cast<abi::DeviceSlots*>(owner + 1);
    return first + static_cast<std::size_t>(peer) * abi::kDeviceFifos + fifo;
}

/// For messages of one form. It does not change while it is open: which message a step sends or
/// receives is said by the table, so that threads need not meet over it.
template <abi::MessageForm kForm>
class Port {
   public:
    /// Of FIFO `fifo` between `self` and the port's peer; `here` is the program state of `self`.
    /// False where the states have not been exchanged. The launch has so many windows.
    [[nodiscard]] __device__ bool open(const abi::DevicePort& port, int self, int fifo,
                                       abi::DeviceProgramState* here, std::uint32_t windows) {
        abi::DeviceCounters& own = counters_of(here->fifos[port.peer][fifo]);
        const bool is_sending = port.is_sending != 0;
        peer_ = port.peer;
        is_sending_ = is_sending;
        messages_ = static_cast<std::uint32_t>(port.messages);
        kept_ = is_sending ? &own.sent : &own.taken;
        awaited_ = is_sending ? &own.emptied : &own.filled;
        // All three loads before any is waited for.
        abi::DeviceProgramState* const there = here->peers[port.peer];
        first_ = *kept_;
        seen_ = kForm == abi::MessageForm::kPlain ? load_acquire(awaited_) : load_system(awaited_);
        if (there == nullptr) return false;
        end_ = first_ + windows * messages_;
        abi::DeviceCounters& theirs = counters_of(there->fifos[self][fifo]);
        acknowledged_at_ = is_sending ? &theirs.filled : &theirs.emptied;
        slots_ = is_sending ? slots_of(there, self, fifo) : slots_of(here, port.peer, fifo);
        return true;
    }
    /// After all windows. The peer may still have messages to take: it acknowledges them in the
    /// program state of `self`.
    __device__ void close() const {
        *kept_ = end_;
        if (kForm != abi::MessageForm::kPlain && !is_sending_)
            store_relaxed(acknowledged_at_, end_);
    }
    [[nodiscard]] __device__ int peer() const { return peer_; }

    /// How many messages came before the one of a window that has number `index` there.
    [[nodiscard]] __device__ std::uint32_t before(std::size_t window, std::uint32_t index) const {
        return first_ + static_cast<std::uint32_t>(window) * messages_ + index;
    }

    // Of the message that has so many before it.

    /// Whether it was here, or there was room for it, when the port was opened.
    [[nodiscard]] __device__ bool has_seen(std::uint32_t before) const {
        return has_reached(seen_, wanted_for(before));
    }
    /// Until that is so. False when it gave up.
    [[nodiscard]] __device__ bool await(const abi::DeviceTeam& team, std::uint32_t before) const {
        return has_seen(before) ||
               await_counter(team, abi::DevicePhase::kStep, awaited_, peer_, wanted_for(before));
    }
    [[nodiscard]] __device__ std::byte* slot(std::uint32_t before) const {
        const std::uint32_t index = before % abi::slots_for(kForm);
        if constexpr (kForm == abi::MessageForm::kLL)
            return reinterpret_cast<std::byte*>(slots_->ll[index]);
        else if constexpr (kForm == abi::MessageForm::kLL128)
            return reinterpret_cast<std::byte*>(slots_->ll128[index]);
        else
            return slots_->messages[index];
    }
    /// It has been put into its slot, or taken from it. By one thread.
    __device__ void pass(std::uint32_t before) const {
        store_release(acknowledged_at_, before + 1);
    }
    /// The same of one that says itself that it is there, and was taken.
    __device__ void pass_relaxed(std::uint32_t before) const {
        store_relaxed(acknowledged_at_, before + 1);
    }
    /// Whether that is said at once: close() says it of the launch's last one.
    [[nodiscard]] __device__ bool is_acknowledged(std::uint32_t before) const {
        return abi::is_acknowledged(before) && before + 1 != end_;
    }

   private:
    [[nodiscard]] __device__ std::uint32_t wanted_for(std::uint32_t before) const {
        return is_sending_ ? abi::emptied_before(before, kForm) : before + 1;
    }
    static __device__ abi::DeviceCounters& counters_of(abi::DeviceFifo& fifo) {
        return fifo.counters[static_cast<int>(kForm)];
    }

    std::uint32_t* kept_;
    const std::uint32_t* awaited_;
    std::uint32_t* acknowledged_at_;
    abi::DeviceSlots* slots_;
    std::uint32_t first_;  // messages before the launch
    std::uint32_t end_;    // and with those of the launch
    std::uint32_t messages_;
    std::uint32_t seen_;  // at `awaited_`, on opening
    std::int32_t peer_;
    bool is_sending_;
};

}  // namespace pccl::kernels::device
