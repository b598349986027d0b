// SPDX-License-Identifier: Apache-2.0

// Ends of FIFOs between two ranks, as one lane of a program opens them.
#pragma once

#include <type_traits>

#include "csrc/abi/device_program.h"
#include "csrc/kernels/device/epoch_scope.cuh"

namespace pccl::kernels::device {

/// Returns the slots of `owner` for FIFO `fifo` from `peer`.
__device__ __forceinline__ abi::DeviceSlots* slots_of(abi::DeviceProgramState* owner, int peer,
                                                      int fifo) {
    auto* const first = reinterpret_cast<abi::DeviceSlots*>(owner + 1);
    return first + static_cast<std::size_t>(peer) * abi::kDeviceFifos + fifo;
}

/// Open end of a FIFO for messages of one form. It is constant while open: the program's table
/// numbers the messages, so that threads need not synchronise over a counter.
template <abi::MessageForm kForm>
class FifoPort {
   public:
    /// Opens FIFO `fifo` between `self` and the port's peer; `here` is the program state of `self`
    /// for that peer, and `windows` those of the launch. False where the states have not been
    /// exchanged.
    [[nodiscard]] __device__ bool open(const abi::DevicePort& port, int self, int fifo,
                                       abi::DeviceProgramState* here, std::uint32_t windows) {
        abi::DeviceCounters& own = counters_of(here->fifos[port.peer][fifo]);
        const bool is_sending = port.is_sending != 0;
        peer_ = port.peer;
        is_sending_ = is_sending;
        messages_ = static_cast<std::uint32_t>(port.messages);
        kept_ = is_sending ? &own.sent : &own.taken;
        awaited_ = is_sending ? &own.emptied : &own.filled;
        // Issues all three loads before any is waited for.
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
    /// Closes the port after all windows. The peer may still have to take messages: it acknowledges
    /// them in the program state of `self`.
    __device__ void close() const {
        *kept_ = end_;
        if (kForm != abi::MessageForm::kPlain && !is_sending_)
            store_relaxed(acknowledged_at_, end_);
    }
    [[nodiscard]] __device__ int peer() const { return peer_; }

    /// Returns how many messages precede message `index` of a window.
    [[nodiscard]] __device__ std::uint32_t before(std::size_t window, std::uint32_t index) const {
        return first_ + static_cast<std::uint32_t>(window) * messages_ + index;
    }

    // The following functions refer to the message with `before` predecessors.

    /// Returns whether it had arrived, or had a free slot, when the port was opened.
    [[nodiscard]] __device__ bool has_seen(std::uint32_t before) const {
        return has_reached(seen_, wanted_for(before));
    }
    /// Waits until that is true. False when the wait gave up, which is reported as one in `phase`.
    [[nodiscard]] __device__ bool await(const abi::DeviceTeam& team, std::uint32_t before,
                                        abi::DevicePhase phase = abi::DevicePhase::kStep) const {
        return has_seen(before) || await_counter(team, phase, awaited_, peer_, wanted_for(before));
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
    /// Publishes that it has been put into its slot, or taken from it. One thread calls it.
    __device__ void pass(std::uint32_t before) const {
        store_release(acknowledged_at_, before + 1);
    }
    /// Does the same for a message whose lines carry their own arrival flag.
    __device__ void pass_relaxed(std::uint32_t before) const {
        store_relaxed(acknowledged_at_, before + 1);
    }
    /// Returns whether to publish that at once: close() publishes it for the last message of the
    /// launch.
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
    std::uint32_t end_;    // messages before and in the launch
    std::uint32_t messages_;
    std::uint32_t seen_;  // value at `awaited_` on opening
    std::int32_t peer_;
    bool is_sending_;
};

}  // namespace pccl::kernels::device
