// SPDX-License-Identifier: Apache-2.0

// Pages by which both ends of a link report their progress: each end writes the other's
// page by RDMA. Every field is a counter that only grows, in a word of its own, so that a reader
// may find any mixture of old and new ones.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "csrc/transport/transport.h"
#include "csrc/transport/verbs/link_exchange.h"

namespace pccl::transport::verbs {

using PageCounter = std::atomic<std::uint64_t>;
static_assert(PageCounter::is_always_lock_free && sizeof(PageCounter) == 8);

/// Clear to send: the receiver writes it into the sender's memory.
struct CreditPage {
    std::array<PageCounter, kChannels> consumed;            // bytes of each stream
    std::array<PageCounter, LinkEnd::kMostLanes> receives;  // receive requests posted again
};

/// Part of a stream that has arrived without an immediate: the sender writes it into the receiver's
/// memory, behind the bytes, while the receiver has no receive request left. The beginning lies at
/// the lower address and is written first or together with the end.
struct TailPage {
    struct Tail {
        PageCounter begin;
        PageCounter end;
    };
    std::array<Tail, kChannels> tails;
};

/// Immediate of a write: channel and offset in its ring.
[[nodiscard]] constexpr std::uint32_t immediate_of(ChannelId channel, std::uint64_t offset) {
    return (static_cast<std::uint32_t>(channel) << 31) | static_cast<std::uint32_t>(offset);
}
[[nodiscard]] constexpr ChannelId channel_in(std::uint32_t immediate) {
    return static_cast<ChannelId>(immediate >> 31);
}
[[nodiscard]] constexpr std::uint32_t offset_in(std::uint32_t immediate) {
    return immediate & 0x7fffffffU;
}
static_assert(kChannels == 2);

}  // namespace pccl::transport::verbs
