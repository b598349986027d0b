// SPDX-License-Identifier: Apache-2.0

// Links: ordered byte streams to one peer.
//
// A link has one direction, from the connecting rank to the accepting rank, and carries a fixed
// number of channels. Each channel is a byte stream of its own: an unread channel does not block
// another. A channel buffers at least `capacity` bytes beyond those that the receiver has consumed,
// so a sender within that bound never waits for the receiver to act. (Two one-way links between a
// pair need no rule about the connecting side, no tie-break, and no thread that must answer for
// another.)
//
// No call blocks. A call moves the bytes that can move now. A caller without progress waits on the
// process's Waiter (doorbell.h), which every link rings at its far end when it made progress
// possible. One thread at a time may use a link; abort() alone may come from any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/sys/socket/path_counters.h"
#include "csrc/transport/transport_flags.h"

namespace pccl::transport {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

/// Hint whether more bytes of the same message follow at once, so that a link may hold these back.
enum class Flush : bool { kLater, kNow };

class SendLink {
   public:
    virtual ~SendLink() = default;

    [[nodiscard]] virtual TransportKind kind() const = 0;
    [[nodiscard]] virtual std::size_t capacity(ChannelId channel) const = 0;
    /// Takes a prefix of `bytes`, possibly empty, and returns its length; the caller may reuse
    /// those bytes at once. Errors: kPeerLost with the peer's rank; kAborted. Errors are sticky.
    virtual Result<std::size_t> send(ChannelId channel, Bytes bytes, Flush flush) = 0;
    /// Sends pieces that do not adjoin as if they were one buffer: the pieces that it takes leave
    /// together.
    virtual Result<std::size_t> send_gathered(ChannelId channel, std::span<const Bytes> pieces,
                                              Flush flush);
    /// Sends the bytes that the link took and still holds (a socket's backlog); returns true when
    /// nothing is left.
    virtual Result<bool> flush(ChannelId channel) = 0;
    /// Returns why the peer is gone, as far as that shows without moving bytes; ok otherwise. Makes
    /// a system call: call it rarely.
    virtual Status look() { return Status::ok(); }
    /// Returns the counters of each connection of a network path; none where there is no such
    /// path. Makes two system calls for each.
    [[nodiscard]] virtual std::vector<sys::NetworkPath> paths() { return {}; }
    /// Makes every later call fail with `reason`, and sends it to the peer (why_gone() in
    /// close_reason.h).
    virtual void abort(const Status& reason) = 0;
};

class RecvLink {
   public:
    virtual ~RecvLink() = default;

    [[nodiscard]] virtual TransportKind kind() const = 0;
    /// Returns the next bytes of the stream that have arrived, in place: empty when there are none.
    /// They stay valid until consume() or receive() on this channel. Errors are those of send(),
    /// returned after all bytes that arrived before the fault.
    virtual Result<Bytes> peek(ChannelId channel) = 0;
    /// Frees the first `count` bytes that peek() returned.
    virtual void consume(ChannelId channel, std::size_t count) = 0;
    /// Copies up to into.size() bytes of the stream, and returns how many.
    virtual Result<std::size_t> receive(ChannelId channel, MutableBytes into) = 0;
    virtual Status look() { return Status::ok(); }
    virtual void abort(const Status& reason) = 0;
};

/// Implements receive() of a link whose bytes arrive in its memory. A template, so that the calls
/// to a final class are direct.
template <typename Link>
Result<std::size_t> receive_peeked(Link& link, ChannelId channel, MutableBytes into) {
    PCCL_ASSIGN_OR_RETURN(const Bytes here, link.peek(channel));
    const std::size_t taken = std::min(here.size(), into.size());
    if (taken == 0) return taken;
    std::memcpy(into.data(), here.data(), taken);
    link.consume(channel, taken);
    return taken;
}

}  // namespace pccl::transport
