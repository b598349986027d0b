// SPDX-License-Identifier: Apache-2.0

// Handles of transfers, messages and notifications between sessions.
//
//     Transfer transfer = session->create_transfer("decode-3").value();
//     transfer.post_recv({theirs, {0, n}}, 2, deadline);
//     transfer.post_send({mine, {0, n}}, 1, deadline);
//     transfer.post_read({mine, {0, n}}, {cache, {0, n}}, deadline);
//     transfer.wait(Deadline::after(2s));
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/export.h>
#include <pccl/memory.h>
#include <pccl/status.h>
#include <pccl/types.h>

namespace pccl::transport {
class GpuEvent;
}

namespace pccl::p2p {

class Matcher;
class MessageRequest;
class SessionCore;
class TransferRequest;
struct MessageArgs;
struct TransferArgs;

/// Most bytes of a notification.
inline constexpr std::size_t kMostNotification = 16 << 10;

/// Short message that a peer has sent: after a transfer, once all its data is in place, or alone.
struct Notification {
    std::string from;              // name of the sending session
    std::vector<std::byte> bytes;  // 1 to kMostNotification
};

/// CUDA stream of a GPU of this process.
using Stream = GpuCallerStream;

/// Event of a stream, which orders a transfer after kernels that write or read its memory; null:
/// nothing to wait for.
using StreamEvent = std::shared_ptr<transport::GpuEvent>;

/// Records an event after the work that `stream` has got so far. Returns kUnsupported where this
/// process has no CUDA, and while the stream is being captured.
[[nodiscard]] PCCL_API Result<StreamEvent> event_of(const Stream& stream);

/// Facts about a transfer.
struct WorkStats {
    std::uint64_t bytes = 0;    // of all blocks
    std::uint64_t blocks = 0;   // of the plan that the transfer moves
    std::uint64_t pieces = 0;   // into which the blocks were joined or cut
    Duration taken{};           // so far, or from begin to end
    std::string path{};         // "shm, mapped", "tcp, by messages", ... (docs/reference/p2p.md)
    std::string reasons{};      // why no faster path was taken; empty: there is none
    std::uint64_t lanes = 0;    // of the connection, for large transfers over TCP
    std::string lane_reason{};  // why there are not more of them; empty: there could be no more
};

/// Handle of a posted one-sided transfer; cheap to copy, thread-safe. The transfer continues when
/// all handles are dropped. In a child of fork() it is complete with kUnavailable, and does not
/// access the parent's state.
class PCCL_API Work {
   public:
    /// Makes a handle, for the library: Session and Transfer return it.
    explicit Work(std::shared_ptr<TransferRequest> request);

    /// Returns kUnavailable in a child of fork().
    [[nodiscard]] Status check_usable() const;
    /// Returns whether the transfer has ended, with or without success. Costs one load.
    [[nodiscard]] bool is_complete() const;
    /// Makes progress for a moment, and returns whether the transfer has ended. Callers may poll
    /// with it.
    [[nodiscard]] bool poll() const;
    /// Returns the outcome; valid once complete. Errors: kAborted for a transfer that was given up;
    /// kUnavailable where the peer has ended the registration, or never made it; kUnsupported where
    /// the memory cannot be reached; kPeerLost. It is never kTimeout: a connection that is not made
    /// in time counts as lost.
    [[nodiscard]] Status status() const;
    /// Makes progress until the transfer has ended, and returns its outcome. Returns kTimeout,
    /// which names the peer, after `deadline`; the transfer continues then.
    [[nodiscard]] Status wait(Deadline deadline) const;
    /// Gives up the pieces that are not posted yet, and returns at once. The transfer ends soon;
    /// its memory is in use until then. It sends no notification. Does nothing where it is
    /// complete.
    void release() const;
    /// Returns the peer of the transfer, which its errors name.
    [[nodiscard]] const SessionId& peer() const;
    /// Returns facts about the transfer; all zero in a child of fork().
    [[nodiscard]] WorkStats stats() const;
    /// Returns, for example, "a read of 4096 bytes".
    [[nodiscard]] std::string to_string() const;

   private:
    std::shared_ptr<TransferRequest> request_;
};

/// Stage of a message. Host memory, and GPU memory by CUDA IPC, is written directly into place:
/// kArrived and kUnpacked coincide there. A failed message keeps the stage that it had.
enum class MessageStage : std::uint8_t {
    kPosted,
    kArrived,   // of a receive: all bytes are in this process, some of them still on their way to
                // GPU memory
    kUnpacked,  // all bytes are in place; of a send: at the peer
    kConsumed,  // its program has seen the completion, or its place in a window was reused
};

/// Returns "posted", "arrived", ...
[[nodiscard]] constexpr std::string_view to_string(MessageStage stage) {
    constexpr std::array<std::string_view, 4> kNames{"posted", "arrived", "unpacked", "consumed"};
    return kNames[static_cast<std::size_t>(stage)];
}

/// Handle of a posted message; cheap to copy, thread-safe. The message continues when all handles
/// are dropped. In a child of fork() it is complete with kUnavailable, and does not access the
/// parent's state.
class PCCL_API Message {
   public:
    /// Makes a handle, for the library: Transfer returns it.
    Message(std::shared_ptr<MessageRequest> request, std::shared_ptr<Matcher> matcher);

    /// Returns kUnavailable in a child of fork().
    [[nodiscard]] Status check_usable() const;
    /// Returns whether the message has ended, with or without success. After success the bytes of a
    /// send are in the peer's memory, those of a receive in this one's.
    [[nodiscard]] bool is_complete() const;
    /// Returns the stage of the message; makes no progress.
    [[nodiscard]] MessageStage stage() const;
    /// Returns the outcome; valid once complete. Errors: kAborted for a message that either side
    /// gave up, kInvalidArgument for one that is longer than its receive, kPeerLost, and those of
    /// Work::status(). It is never kTimeout: a connection that is not made in time counts as lost.
    [[nodiscard]] Status status() const;
    /// Returns the length of the message, 0 unless status() is ok. Valid once complete.
    [[nodiscard]] std::uint64_t bytes() const;
    /// Returns the tag.
    [[nodiscard]] std::uint64_t tag() const;
    /// Returns whether it is a send; otherwise it is a receive.
    [[nodiscard]] bool is_send() const;
    /// Makes progress until the message has ended, and returns its outcome. Returns kTimeout, which
    /// names the peer, after `deadline`; the message continues then.
    [[nodiscard]] Status wait(Deadline deadline) const;
    /// Gives the message up, and returns at once. The message ends soon, as done or kAborted; its
    /// memory is in use until then. Does nothing where it is complete.
    void release() const;
    /// Returns the peer of the message, which its errors name.
    [[nodiscard]] const SessionId& peer() const;
    /// Returns, for example, "a send of 4096 bytes with tag 1".
    [[nodiscard]] std::string to_string() const;

   private:
    std::shared_ptr<MessageRequest> request_;
    std::shared_ptr<Matcher> matcher_;
};

/// Options of a Transfer.
struct TransferOptions {
    /// Limits the sends, the receives, the reads and the writes in progress, each separately; at
    /// least 1.
    std::size_t window = 16;
    /// Bytes per piece of a send, a read or a write, from kLeastChunk to Plan::kLongestPiece. A
    /// piece that has begun cannot be given up.
    std::uint64_t chunk = Plan::kLongestPiece;
    /// Least bytes per piece.
    static constexpr std::uint64_t kLeastChunk = 4 << 10;
};

/// Handle for a bounded window of messages and one-sided transfers with one peer: messages with
/// tags, in which both sides' programs take part, and reads and writes. Tags are shared by the two
/// sessions: a send matches the first receive of its tag that the peer has posted, through any
/// Transfer. Cheap to copy, thread-safe. Posted transfers continue when all handles are dropped. In
/// a child of fork() all of them are complete, and calls return kUnavailable.
class PCCL_API Transfer {
   public:
    /// Makes a handle, for the library: use Session::create_transfer().
    Transfer(std::shared_ptr<SessionCore> core, std::string peer, const TransferOptions& options);

    /// Returns kUnavailable in a child of fork().
    [[nodiscard]] Status check_usable() const;
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

    std::shared_ptr<State> state_;
};

}  // namespace pccl::p2p
