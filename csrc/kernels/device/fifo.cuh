// Ends of FIFOs between two ranks, as one lane of a program has them open.
#pragma once

#include "csrc/abi/device_program.h"
#include "csrc/kernels/device/sync.cuh"

namespace pccl::kernels::device {

/// Slots that `owner` has for FIFO `fifo` from `peer`.
__device__ __forceinline__ std::byte* slots_of(abi::DeviceDesk* owner, int peer, int fifo) {
    constexpr std::size_t kFifoBytes = abi::kDeviceSlots * abi::kSlotBytes;
    auto* const first = reinterpret_cast<std::byte*>(owner + 1);
    return first + (static_cast<std::size_t>(peer) * abi::kDeviceFifos + fifo) * kFifoBytes;
}

/// One thread at a time uses it.
class Port {
   public:
    /// `there` is the peer's desk.
    __device__ void open(const abi::DevicePort& port, int self, int fifo, abi::DeviceDesk* here,
                         abi::DeviceDesk* there) {
        abi::DeviceFifo& own = here->fifos[port.peer][fifo];
        abi::DeviceFifo& theirs = there->fifos[self][fifo];
        const bool is_sending = port.is_sending != 0;
        peer_ = port.peer;
        kept_ = is_sending ? &own.sent : &own.taken;
        awaited_ = is_sending ? &own.emptied : &own.filled;
        told_ = is_sending ? &theirs.filled : &theirs.emptied;
        slots_ = is_sending ? slots_of(there, self, fifo) : slots_of(here, port.peer, fifo);
        count_ = *kept_;
        is_sending_ = is_sending;
    }
    __device__ void close() const { *kept_ = count_; }

    /// Until the next message is here, or there is room for one. False when it gave up.
    [[nodiscard]] __device__ bool await(const abi::DeviceTeam& team) const {
        const std::uint32_t wanted = is_sending_ ? abi::emptied_before(count_) : count_ + 1;
        return await_counter(team, abi::DevicePhase::kStep, awaited_, peer_, wanted);
    }
    /// Of the message that was awaited; to be asked before it is passed on.
    [[nodiscard]] __device__ std::byte* slot() const {
        return slots_ + abi::slot_after(count_) * abi::kSlotBytes;
    }
    /// The message has been put into the slot, or taken from it.
    __device__ void pass() { store_release(told_, ++count_); }

   private:
    std::uint32_t* kept_;
    const std::uint32_t* awaited_;
    std::uint32_t* told_;
    std::byte* slots_;
    std::uint32_t count_;
    std::int32_t peer_;
    bool is_sending_;
};

}  // namespace pccl::kernels::device
