// SPDX-License-Identifier: Apache-2.0
#include "csrc/kernels/device/copy.cuh"
#include "csrc/kernels/device/epoch_scope.cuh"
#include "csrc/kernels/device/posted.cuh"
#include "csrc/kernels/device/shares.cuh"
#include "csrc/kernels/dispatch.cuh"

namespace pccl::kernels {
namespace {

using namespace device;

/// Ends the message in this block, which has stored its share or given up. The last block to do so
/// reports the arrival to the receiver; where a block gave up, it reports that no block stores any
/// more. The number is not used again, so later data is not taken for this message.
__device__ void finish(const MessageLaunch& all, const KernelMessage& message, std::uint32_t number,
                       bool is_stored) {
    constexpr std::uint32_t kGaveUp = 1U << 16;  // above the number of blocks
    __syncthreads();
    if (threadIdx.x != 0) return;
    abi::PairMailbox& own = all.team.heaps[all.team.rank]->mailboxes[message.peer];
    abi::PairMailbox& there = all.team.heaps[message.peer]->mailboxes[all.team.rank];
    __threadfence_system();
    const std::uint32_t before = atomicAdd(&own.finished, is_stored ? 1 : 1 + kGaveUp);
    if (before % kGaveUp + 1 < static_cast<std::uint32_t>(all.blocks)) return;
    __threadfence_system();
    own.finished = 0;
    own.sent = number;
    if (is_stored && before < kGaveUp) {
        store_release(&there.arrived, number);
    } else {
        store_release(&there.coming, 0);
    }
}

/// Announces the message to the receiver, before this block reads the posted buffer.
__device__ void announce_message(const abi::DeviceTeam& team, int peer, std::uint32_t number) {
    store_relaxed(&team.heaps[peer]->mailboxes[team.rank].coming, number);
}

__device__ void send(const MessageLaunch& all, int index, int block) {
    __shared__ std::byte* to;
    const KernelMessage& message = all.sent[index];
    const std::uint32_t number =
        number_after(all.team.heaps[all.team.rank]->mailboxes[message.peer].sent);
    if (threadIdx.x == 0) {
        announce_message(all.team, message.peer, number);
        if (!await_posted_receive(all.team, {message.peer, number, message.bytes}, to))
            to = nullptr;
    }
    __syncthreads();
    if (to != nullptr) {
        const Range share = Shares(message.bytes, all.blocks).of(block);
        copy_bytes(block_group(), message.data + share.begin, to + share.begin, share.bytes);
    }
    finish(all, message, number, to != nullptr);
}

/// Takes the posted buffer back, and returns when no block of the sender stores there any more.
__device__ __noinline__ void stop_receiving(const abi::DeviceTeam& team, int peer,
                                            std::uint32_t number) {
    const abi::PairMailbox& own = team.heaps[team.rank]->mailboxes[peer];
    take_back(team.heaps[peer]->mailboxes[team.rank].posted);
    await_exit(team, peer, [&] {
        return load_acquire(&own.coming) == number && load_acquire(&own.arrived) != number;
    });
}

/// Posts the buffer of the message and waits for the message.
__device__ void receive(const MessageLaunch& all, int index) {
    if (threadIdx.x != 0) return;
    const abi::DeviceTeam& team = all.team;
    const KernelMessage& message = all.received[index];
    abi::PairMailbox& own = team.heaps[team.rank]->mailboxes[message.peer];
    const std::uint32_t number = number_after(own.received);
    post_receive(team, {message.peer, number, message.bytes}, message.peer_address);
    if (!await_counter(team, abi::DevicePhase::kMessage, &own.arrived, message.peer, number))
        stop_receiving(team, message.peer, number);
    own.received = number;
}

/// Exchanges messages. The receiving blocks come first: the peers need them to send.
__global__ void __launch_bounds__(512)
    exchange_messages(const __grid_constant__ MessageLaunch all) {
    await_launch_ahead();
    const int block = static_cast<int>(blockIdx.x);
    if (block < all.receives) return receive(all, block);
    const int sender = block - all.receives;
    send(all, sender / all.blocks, sender % all.blocks);
}

}  // namespace

Status launch_messages(const MessageLaunch& messages, Stream stream) {
    const LaunchPlan plan{.blocks = messages.receives + messages.sends * messages.blocks};
    return launch_kernel(exchange_messages, messages, plan, stream);
}

}  // namespace pccl::kernels
