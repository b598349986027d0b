// SPDX-License-Identifier: Apache-2.0

// Receives that are posted to the senders of messages.
#pragma once

#include "csrc/abi/device_team.h"
#include "csrc/kernels/device/numbered.cuh"
#include "csrc/kernels/device/waits.cuh"

namespace pccl::kernels::device {

/// Number, length and other rank of a message.
struct MessageLabel {
    int peer;
    std::uint32_t number;
    std::uint64_t bytes;
};

/// Posts a receive to the sender; `address` is that of its memory for the sender.
__device__ __forceinline__ void post_receive(const abi::DeviceTeam& team,
                                             const MessageLabel& message, std::uint64_t address) {
    const Numbered lines(team, message.number);
    abi::EntryLines* there = &team.heaps[message.peer]->mailboxes[team.rank].posted;
    store_line(&there->input, lines.line_of(address));
    store_line(&there->output, lines.line_of(message.bytes));
}

/// Waits for the receive that the receiver posts, and sets its address. False when it did not
/// arrive, or has another length.
__device__ __forceinline__ bool await_posted_receive(const abi::DeviceTeam& team,
                                                     const MessageLabel& message,
                                                     std::byte*& address) {
    const abi::EntryLines* posted = &team.heaps[team.rank]->mailboxes[message.peer].posted;
    Numbered::EntryData entry_data{};
    if (!Numbered(team, message.number)
             .await(posted, abi::DevicePhase::kPostedReceive, message.peer, entry_data))
        return false;
    address = reinterpret_cast<std::byte*>(entry_data.input);
    if (entry_data.output == message.bytes) return true;
    report(team, {abi::DevicePhase::kLength, message.peer, message.bytes, entry_data.output});
    return false;
}

}  // namespace pccl::kernels::device
