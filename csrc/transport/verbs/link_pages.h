// SPDX-License-Identifier: Apache-2.0

// Pages by which both ends of a link report their progress: each end writes the other's
// page by RDMA. Every field is a counter that only grows, in a word of its own, so that a reader
// may find any mixture of old and new ones.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
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

/// Bytes of a message of a failover (failover.h).
inline constexpr std::size_t kMailboxBytes = 2016;

/// What the sender writes into the receiver's memory over one lane, beside the bytes of streams.
/// Each lane has a slot of its own: a write of a failed lane may arrive late, after others of the
/// lane that has taken its place, and must not hide them.
struct LaneSlot {
    /// Part of a stream that has arrived without an immediate: the sender writes it, behind the
    /// bytes, while the receiver has no receive request left. The beginning lies at the lower
    /// address and is written first or together with the end.
    struct Tail {
        PageCounter begin;
        PageCounter end;
    };
    std::array<Tail, kChannels> tails;
    std::array<std::byte, kMailboxBytes> mailbox;  // a FailoverRequest
};
static_assert(sizeof(LaneSlot) == 2048 && offsetof(LaneSlot, tails) == 0);
[[nodiscard]] constexpr std::size_t bytes_of_slots(std::size_t lanes) {
    return lanes * sizeof(LaneSlot);
}

/// Returns how many bytes a receiver consumes before it returns credit for them: half of a ring of
/// the usual size, so that eight messages of 64 KiB take one credit; less of a smaller one.
[[nodiscard]] constexpr std::uint64_t credit_step(std::uint64_t ring_bytes) {
    return ring_bytes >= 1 * kMiB ? ring_bytes / 2 : ring_bytes / 4;
}
/// Returns the bytes that a sender can always have under way (SendLink::capacity()).
[[nodiscard]] constexpr std::uint64_t capacity_of(std::uint64_t ring_bytes) {
    return ring_bytes - credit_step(ring_bytes);
}

/// Receive requests beyond those that the receiver describes: pieces without immediate take them to
/// end the receiver's sleep, while the credit for the others is under way.
inline constexpr std::uint32_t kSpareReceives = 16;

/// Layout of the credit page of either end, which has kPageBytes: the counters, and the receiver's
/// FailoverAnswer, both of which the receiver writes into the sender's page; this end's own
/// message, as the source of its write. No late write hides an answer, or the credit before it: the
/// sender has put its queue pair of the failed lane into ERROR before it requests one.
inline constexpr std::size_t kPageBytes = 8192;
inline constexpr std::size_t kMailbox = 1024;
inline constexpr std::size_t kOutgoing = 4096;
static_assert(sizeof(CreditPage) <= kMailbox && kMailbox + kMailboxBytes <= kOutgoing &&
              kOutgoing + kMailboxBytes <= kPageBytes);

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
/// Immediates of other writes, which no offset in a ring has.
inline constexpr std::uint32_t kMessageImmediate = 0x7fffffff;  // the mailbox has a message
inline constexpr std::uint32_t kCreditImmediate = 0x7ffffffe;   // the counters have changed
inline constexpr std::uint32_t kTailImmediate = 0x7ffffffd;     // likewise
inline constexpr std::uint32_t kLaneDown = 0x7fffff00;          // plus the lane: it has failed
static_assert(LinkEnd::kMostRing < kLaneDown && LinkEnd::kMostLanes <= 128);
static_assert(kChannels == 2);

}  // namespace pccl::transport::verbs
