// SPDX-License-Identifier: Apache-2.0

// Messages between GPUs that do not reach each other. Those of users lie in slots of their receiver
// in the host, as those of programs do, in FIFOs of their own: messages and collectives run
// concurrently. The FIFOs of a message share its bytes, and both sides have as many, whatever the
// number of their blocks is.
#include "csrc/kernels/device/copy.cuh"
#include "csrc/kernels/device/epoch_scope.cuh"
#include "csrc/kernels/device/fifo.cuh"
#include "csrc/kernels/device/posted.cuh"
#include "csrc/kernels/device/shares.cuh"
#include "csrc/kernels/dispatch.cuh"

namespace pccl::kernels {
namespace {

using namespace device;
using MessagePort = FifoPort<abi::MessageForm::kPlain>;

/// One side of a message, as one block moves it: the FIFOs `block`, `block` + blocks and so on. All
/// threads call its functions.
class MessageSide {
   public:
    __device__ MessageSide(const HostMessageLaunch& all, const KernelMessage& message,
                           bool is_sending, int block, MessagePort* ports)
        : all_(all),
          team_(all.messages.team),
          message_(message),
          is_sending_(is_sending),
          block_(block),
          fifos_(abi::fifos_for(message.bytes)),
          shares_(message.bytes, fifos_),
          window_bytes_(abi::message_window(shares_.of(0).bytes)),
          ports_(ports) {}

    [[nodiscard]] __device__ bool has_work() const { return block_ < fifos_; }
    /// Returns how many blocks of this side move the message.
    [[nodiscard]] __device__ int blocks() const { return min(all_.messages.blocks, fifos_); }

    /// Opens this block's FIFOs. False, on all threads, where the states are not known.
    [[nodiscard]] __device__ bool open() const {
        const int fifo = block_ + static_cast<int>(threadIdx.x) * all_.messages.blocks;
        bool is_open = true;
        if (fifo < fifos_) {
            const abi::DevicePort port{message_.peer, 0, is_sending_ ? 1 : 0,
                                       static_cast<int>(windows_in(fifo))};
            is_open = ports_[threadIdx.x].open(port, team_.rank, abi::kFirstMessageFifo + fifo,
                                               all_.states.with[message_.peer], 1);
        }
        return __syncthreads_and(is_open) != 0;
    }

    /// Moves window after window of all FIFOs. Both sides take them in one order, so that a slot
    /// that one waits for is never behind one that the other waits for. False, on all threads, when
    /// a wait failed.
    [[nodiscard]] __device__ bool run() const {
        for (std::size_t window = 0; window < windows_in(0); ++window)
            for (int fifo = block_, port = 0; fifo < fifos_; fifo += all_.messages.blocks, ++port)
                if (window < windows_in(fifo) && !move(ports_[port], fifo, window)) return false;
        return true;
    }

    __device__ void close() const {
        const int port = static_cast<int>(threadIdx.x);
        if (block_ + port * all_.messages.blocks < fifos_) ports_[port].close();
    }

   private:
    /// Returns the messages of the FIFO; FIFO 0 has the most.
    [[nodiscard]] __device__ std::size_t windows_in(int fifo) const {
        return (shares_.of(fifo).bytes + window_bytes_ - 1) / window_bytes_;
    }
    [[nodiscard]] __device__ bool move(const MessagePort& port, int fifo,
                                       std::size_t window) const {
        const std::uint32_t before = port.before(0, static_cast<std::uint32_t>(window));
        const bool came = threadIdx.x != 0 || port.await(team_, before, phase());
        if (__syncthreads_and(came) == 0) return false;
        const Range share = shares_.of(fifo);
        const Range part = within(share.bytes, window * window_bytes_, window_bytes_);
        std::byte* const here = message_.data + share.begin + part.begin;
        if (is_sending_) {
            copy_bytes(block_group(), here, port.slot(before), part.bytes);
        } else {
            copy_bytes(block_group(), port.slot(before), here, part.bytes);
        }
        __syncthreads();
        if (threadIdx.x == 0) port.pass(before);
        return true;
    }
    [[nodiscard]] __device__ abi::DevicePhase phase() const {
        return is_sending_ ? abi::DevicePhase::kPostedReceive : abi::DevicePhase::kMessage;
    }

    const HostMessageLaunch& all_;
    const abi::DeviceTeam& team_;
    const KernelMessage& message_;
    const bool is_sending_;
    const int block_;
    const int fifos_;
    const Shares shares_;
    const std::size_t window_bytes_;
    MessagePort* const ports_;
};

/// Ends one side of a message in this block; the last of `blocks` sets the side's counter.
__device__ void count_out(std::uint32_t& finished, int blocks, std::uint32_t& counter,
                          std::uint32_t number) {
    __syncthreads();
    if (threadIdx.x != 0) return;
    __threadfence();
    if (atomicAdd(&finished, 1) + 1 < static_cast<std::uint32_t>(blocks)) return;
    finished = 0;
    counter = number;
}

__device__ abi::PairMailbox& mailbox_of(const HostMessageLaunch& all, const KernelMessage& from) {
    return all.messages.team.heaps[all.messages.team.rank]->mailboxes[from.peer];
}

/// Moves the message through this block's FIFOs, if it waits in vain for none.
__device__ void move_through(const MessageSide& side) {
    if (side.open() && side.run()) side.close();
}

__device__ void send(const HostMessageLaunch& all, const KernelMessage& message,
                     const MessageSide& side) {
    abi::PairMailbox& own = mailbox_of(all, message);
    const std::uint32_t number = number_after(own.sent);
    const MessageLabel label{message.peer, number, message.bytes};
    std::byte* unused = nullptr;
    const bool is_posted =
        threadIdx.x != 0 || await_posted_receive(all.messages.team, label, unused);
    if (__syncthreads_and(is_posted) != 0) move_through(side);
    count_out(own.finished, side.blocks(), own.sent, number);
}

__device__ void receive(const HostMessageLaunch& all, const KernelMessage& message,
                        const MessageSide& side, int block) {
    abi::PairMailbox& own = mailbox_of(all, message);
    const std::uint32_t number = number_after(own.received);
    if (block == 0 && threadIdx.x == 0)
        post_receive(all.messages.team, {message.peer, number, message.bytes}, 0);
    move_through(side);
    count_out(own.taken, side.blocks(), own.received, number);
}

/// Exchanges messages. The receiving blocks come first: the peers need them to send. Nobody but
/// this rank accesses its tensors, so one that gives up leaves at once.
__global__ void __launch_bounds__(kHostMessageThreads)
    exchange_host_messages(const __grid_constant__ HostMessageLaunch all) {
    __shared__ MessagePort ports[abi::kMessageFifos];
    await_launch_ahead();
    const int index = static_cast<int>(blockIdx.x) / all.messages.blocks;
    const int block = static_cast<int>(blockIdx.x) % all.messages.blocks;
    const bool is_sending = index >= all.messages.receives;
    const KernelMessage& message = is_sending ? all.messages.sent[index - all.messages.receives]
                                              : all.messages.received[index];
    const MessageSide side(all, message, is_sending, block, ports);
    if (!side.has_work()) return;
    if (is_sending) {
        send(all, message, side);
    } else {
        receive(all, message, side, block);
    }
}

}  // namespace

Status launch_host_messages(const HostMessageLaunch& launch, Stream stream) {
    const MessageLaunch& all = launch.messages;
    const LaunchPlan plan{.blocks = (all.receives + all.sends) * all.blocks,
                          .threads = kHostMessageThreads};
    return launch_kernel(exchange_host_messages, launch, plan, stream);
}

}  // namespace pccl::kernels
