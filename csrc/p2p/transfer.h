// SPDX-License-Identifier: Apache-2.0

// Handle for a bounded window of messages and one-sided transfers with one peer: messages with
// tags, in which both sides' programs take part, and reads and writes.
//
//     Transfer transfer = session->create_transfer("decode-3").value();
//     transfer.post_recv({theirs, {0, n}}, 2, deadline);
//     transfer.post_send({mine, {0, n}}, 1, deadline);
//     transfer.post_read({mine, {0, n}}, {cache, {0, n}}, deadline);
//     transfer.wait(Deadline::after(2s));
//
// Tags are shared by the two sessions: a send matches the first receive of its tag that the peer
// has posted, through any Transfer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/base/fork_bound.h"
#include "csrc/base/ids.h"
#include "csrc/p2p/memory.h"
#include "csrc/p2p/message_stage.h"
#include "csrc/p2p/plan.h"
#include "csrc/p2p/work.h"

namespace pccl::p2p {

class Matcher;
class MessageRequest;
class SessionCore;
struct MessageArgs;
struct TransferArgs;

/// Local side of a transfer.
struct LocalExtent {
    std::shared_ptr<LocalMemory> memory;
    Extent extent;
};

/// Remote side of a transfer.
struct RemoteExtent {
    RemoteMemory memory;
    Extent extent;
};

/// Handle of a posted message; cheap to copy, thread-safe. The message continues when all handles
/// are dropped. In a child of fork() it is complete with kUnavailable, and does not access the
/// parent's state.
class PCCL_API Message {
   public:
    Message(std::shared_ptr<MessageRequest> request, std::shared_ptr<Matcher> matcher);

    /// Returns kUnavailable in a child of fork().
    [[nodiscard]] Status check_usable() const { return request_.check(); }
    /// Returns whether the message has ended, with or without success. After success the bytes of a
    /// send are in the peer's memory, those of a receive in this one's.
    [[nodiscard]] bool is_complete() const;
    /// Returns the stage of the message; makes no progress.
    [[nodiscard]] MessageStage stage() const;
    /// Returns the outcome; valid once complete. Errors: kAborted for a message that either side
    /// gave up, kInvalidArgument for one that is longer than its receive, kPeerLost, and those of
    /// transport/rma.h. It is never kTimeout: a connection that is not made in time counts as lost.
    [[nodiscard]] Status status() const;
    /// Returns the length of the message, 0 unless status() is ok. Valid once complete.
    [[nodiscard]] std::uint64_t bytes() const;
    [[nodiscard]] std::uint64_t tag() const;
    [[nodiscard]] bool is_send() const;
    /// Makes progress until the message has ended, and returns its outcome. Returns kTimeout, which
    /// names the peer, after `deadline`; the message continues then.
    [[nodiscard]] Status wait(Deadline deadline) const;
    /// Gives the message up, and returns at once. The message ends soon, as done or kAborted; its
    /// memory is in use until then. Does nothing where it is complete.
    void release() const;
    /// Returns the peer of the message, which its errors name.
    [[nodiscard]] const SessionId& peer() const;
    [[nodiscard]] std::string to_string() const;

   private:
    ForkBound<MessageRequest> request_;
    ForkBound<Matcher> matcher_;
};

struct TransferOptions {
    /// Limits the sends, the receives, the reads and the writes in progress, each separately.
    std::size_t window = 16;
    /// Bytes per piece of a send, a read or a write, from kLeastChunk to Plan::kLongestPiece. A
    /// piece that has begun cannot be given up.
    std::uint64_t chunk = Plan::kLongestPiece;
    static constexpr std::uint64_t kLeastChunk = 4 * kKiB;
};

/// Handle, cheap to copy, thread-safe. Posted transfers continue when all handles are dropped. In a
/// child of fork() all of them are complete, and calls return kUnavailable.
class PCCL_API Transfer {
   public:
    /// Use Session::create_transfer() instead.
    Transfer(std::shared_ptr<SessionCore> core, std::string peer, const TransferOptions& options);

    /// Returns kUnavailable in a child of fork().
    [[nodiscard]] Status check_usable() const { return state_.check(); }
    /// Posts a send once the window has room. Connects first if necessary. Returns kTimeout, which
    /// names the peer, after `deadline`, with nothing posted; kInvalidArgument for a block out of
    /// bounds or unregistered memory; kResourceExhausted where too many messages of the two
    /// sessions wait.
    Result<Message> post_send(const LocalExtent& from, std::uint64_t tag, Deadline deadline);
    /// Posts a receive, as post_send() posts a send. The message may be shorter than the block.
    Result<Message> post_recv(const LocalExtent& into, std::uint64_t tag, Deadline deadline);
    /// Posts a read as Session::read() does, with the waits and errors of post_send(). The remote
    /// memory must be this peer's.
    Result<Work> post_read(const LocalExtent& into, const RemoteExtent& from, Deadline deadline,
                           std::span<const std::byte> notification = {});
    /// Posts a write, as post_read() posts a read.
    Result<Work> post_write(const LocalExtent& from, const RemoteExtent& to, Deadline deadline,
                            std::span<const std::byte> notification = {});
    /// Returns the peer's name.
    [[nodiscard]] const std::string& peer() const;
    /// Returns whether everything posted has ended.
    [[nodiscard]] bool is_complete() const;
    /// Waits until everything posted has ended. Returns kTimeout, which lists the unfinished
    /// transfers, after `deadline`; these continue.
    [[nodiscard]] Status await_end(Deadline deadline);
    /// Returns the first error among those that have ended since the last call.
    [[nodiscard]] Status take_error();
    /// Calls await_end(), then take_error().
    Status wait(Deadline deadline);
    /// Gives up everything that has not ended, and returns at once.
    void release();

   private:
    struct State;
    enum class Kind : std::uint8_t;
    class Posted;
    Result<Message> post(MessageArgs args, Deadline deadline);
    Result<Work> post(TransferArgs args, Deadline deadline);
    /// Returns the arguments of a read or a write.
    [[nodiscard]] Result<TransferArgs> args(const LocalExtent& here, const RemoteExtent& there,
                                            std::span<const std::byte> notification) const;
    static Status await_room(State& state, Kind kind, Deadline deadline);

    ForkBound<State> state_;
};

}  // namespace pccl::p2p
