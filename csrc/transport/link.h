// Links: ordered byte streams to one peer.
//
// A link goes one way, from the rank that connected it to the rank that accepted it, and carries a
// fixed number of channels, each a byte stream of its own: a channel that nobody reads does not
// hold up another. A channel buffers at least `capacity` bytes beyond what the receiver has
// consumed, so a sender that stays within that bound never waits for the receiver to act. (Two
// one-way links between a pair need no rule about who connects, no tie-break, and no thread that
// must answer for another.)
//
// Nothing here blocks. A call moves what can move now; callers that find nothing to do wait on the
// process's Waiter (doorbell.h), which every link rings at its far end when it made progress
// possible. One thread at a time may use a link; abort() alone may come from any thread.
#pragma once

#include <cstddef>
#include <span>

#include "csrc/base/status.h"
#include "csrc/transport/transport_flags.h"

namespace pccl::transport {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

/// Whether more bytes of the same message follow at once, so that a link may hold these back.
enum class Flush : bool { kLater, kNow };

class SendLink {
   public:
    virtual ~SendLink() = default;

    [[nodiscard]] virtual TransportKind kind() const = 0;
    [[nodiscard]] virtual std::size_t capacity(ChannelId channel) const = 0;
    /// Takes a prefix of `bytes`, possibly none, and returns its length; those bytes may be reused
    /// at once. Errors: kPeerLost with the peer's rank; kAborted. Errors stick.
    virtual Result<std::size_t> send(ChannelId channel, Bytes bytes, Flush flush) = 0;
    /// The same of pieces that do not adjoin, as if they did: they leave together as far as they
    /// are taken.
    virtual Result<std::size_t> send_gathered(ChannelId channel, std::span<const Bytes> pieces,
                                              Flush flush);
    /// Pushes out what the link still holds of bytes it took (a socket's backlog); true when
    /// nothing is left.
    virtual Result<bool> flush(ChannelId channel) = 0;
    /// Why the peer is gone, as far as that shows without moving bytes; ok where it does not. A
    /// system call: for now and then.
    virtual Status look() { return Status::ok(); }
    /// Makes every later call fail with `reason`, and tells the peer (why_gone() in
    /// close_reason.h).
    virtual void abort(const Status& reason) = 0;
};

class RecvLink {
   public:
    virtual ~RecvLink() = default;

    [[nodiscard]] virtual TransportKind kind() const = 0;
    /// The next bytes of the stream that are here already, in place: empty when there are none.
    /// They stay valid until consume() or receive() on this channel. Errors as for send(), after
    /// all bytes that arrived before the fault were handed out.
    virtual Result<Bytes> peek(ChannelId channel) = 0;
    /// Frees the first `count` bytes of what peek() showed.
    virtual void consume(ChannelId channel, std::size_t count) = 0;
    /// Copies up to into.size() next bytes, and returns how many.
    virtual Result<std::size_t> receive(ChannelId channel, MutableBytes into) = 0;
    virtual Status look() { return Status::ok(); }
    virtual void abort(const Status& reason) = 0;
};

}  // namespace pccl::transport
