// What goes to and from one peer, at most so much at a time: messages with tags, where both sides'
// programs take part, and one-sided reads and writes.
//
//     Transfer transfer = session->create_transfer("decode-3").value();
//     transfer.post_recv({theirs, {0, n}}, 2, deadline);
//     transfer.post_send({mine, {0, n}}, 1, deadline);
//     transfer.post_read({mine, {0, n}}, {cache, {0, n}}, deadline);
//     transfer.wait(Deadline::after(2s));
//
// Tags are between two sessions: a send goes into the first receive of its tag that the peer has
// posted, whichever Transfer of the two made them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "csrc/base/clock.h"
#include "csrc/base/fork_bound.h"
#include "csrc/base/status.h"
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

/// Of a transfer, here.
struct LocalExtent {
    std::shared_ptr<LocalMemory> memory;
    Extent extent;
};

/// Of a transfer, there.
struct RemoteExtent {
    RemoteMemory memory;
    Extent extent;
};

/// One that was posted: a handle, cheap to copy, safe from every thread. It goes on when all are
/// dropped. In a child of fork() it is complete, with kUnavailable, and reaches nothing of the
/// parent's.
class PCCL_API Message {
   public:
    Message(std::shared_ptr<MessageRequest> request, std::shared_ptr<Matcher> matcher);

    /// kUnavailable in a child of fork().
    [[nodiscard]] Status check_usable() const { return request_.check(); }
    /// Whether it has ended, well or not: of a send, the peer's memory has its bytes; of a receive,
    /// they are here.
    [[nodiscard]] bool is_complete() const;
    /// How far it has come; makes no progress on it.
    [[nodiscard]] MessageStage stage() const;
    /// How it ended, of one that is complete. kAborted for one that was given up, here or there;
    /// kInvalidArgument for a message that is longer than its receive; kPeerLost; the errors of
    /// transport/rma.h. Never kTimeout: a connection that could not be made in time is lost.
    [[nodiscard]] Status status() const;
    /// Of one that is complete: 0 unless it is ok; of a receive, those of the message.
    [[nodiscard]] std::uint64_t bytes() const;
    [[nodiscard]] std::uint64_t tag() const;
    [[nodiscard]] bool is_send() const;
    /// Makes progress on it until it has ended, and says how. kTimeout names the peer, and leaves
    /// it going.
    [[nodiscard]] Status wait(Deadline deadline) const;
    /// Gives it up, and returns at once: it ends soon, done or kAborted, and only then is its
    /// memory free. Nothing where it is complete.
    void release() const;
    /// Whom it is with, and whom its errors are about.
    [[nodiscard]] const SessionId& peer() const;
    [[nodiscard]] std::string to_string() const;

   private:
    ForkBound<MessageRequest> request_;
    ForkBound<Matcher> matcher_;
};

struct TransferOptions {
    /// Sends, receives, reads and writes of a transfer that have not ended: at most so many of
    /// each.
    std::size_t window = 16;
    /// Bytes of the pieces in which a send, a read or a write goes, kLeastChunk to
    /// Plan::kLongestPiece: a piece that has begun is not given up.
    std::uint64_t chunk = Plan::kLongestPiece;
    static constexpr std::uint64_t kLeastChunk = 4 * kKiB;
};

/// A handle, cheap to copy, safe from every thread. What was posted goes on when all are dropped.
/// In a child of fork() all of it is complete, and its calls are kUnavailable.
class PCCL_API Transfer {
   public:
    /// Of Session::create_transfer().
    Transfer(std::shared_ptr<SessionCore> core, std::string peer, const TransferOptions& options);

    /// kUnavailable in a child of fork().
    [[nodiscard]] Status check_usable() const { return state_.check(); }
    /// Waits until the window has room: kTimeout names the peer, and nothing is posted. Connects if
    /// need be. kInvalidArgument for a block that is out of bounds or memory that is not
    /// registered, kResourceExhausted where more messages of the two sessions wait than they keep.
    Result<Message> post_send(const LocalExtent& from, std::uint64_t tag, Deadline deadline);
    /// The same. The message may be shorter than the block.
    Result<Message> post_recv(const LocalExtent& into, std::uint64_t tag, Deadline deadline);
    /// As Session::read(), with the waits and errors of post_send(). The memory is this peer's.
    Result<Work> post_read(const LocalExtent& into, const RemoteExtent& from, Deadline deadline,
                           std::span<const std::byte> notification = {});
    /// As Session::write(), likewise.
    Result<Work> post_write(const LocalExtent& from, const RemoteExtent& to, Deadline deadline,
                            std::span<const std::byte> notification = {});
    /// Whom all of it is with.
    [[nodiscard]] const std::string& peer() const;
    /// Whether all that were posted have ended.
    [[nodiscard]] bool is_complete() const;
    /// Until all have ended. kTimeout says what has not, and leaves it going.
    [[nodiscard]] Status await_end(Deadline deadline);
    /// The first error of those that have ended since the last call.
    [[nodiscard]] Status take_error();
    /// Both, one after the other.
    Status wait(Deadline deadline);
    /// Gives up all that have not ended, and returns at once.
    void release();

   private:
    struct State;
    enum class Kind : std::uint8_t;
    class Posted;
    Result<Message> post(MessageArgs args, Deadline deadline);
    Result<Work> post(TransferArgs args, Deadline deadline);
    /// To read or to write.
    [[nodiscard]] Result<TransferArgs> args(const LocalExtent& here, const RemoteExtent& there,
                                            std::span<const std::byte> notification) const;
    static Status await_room(State& state, Kind kind, Deadline deadline);

    ForkBound<State> state_;
};

}  // namespace pccl::p2p
