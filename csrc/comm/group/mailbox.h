// SPDX-License-Identifier: Apache-2.0

// Point-to-point messages of a group, with tags and any-source receives.
//
// A message is a header and a payload on the message channel of the link to the receiver. Sends to
// one peer go out in order. An arrived message without a matching receive stays in its link until a
// receive for a later message is posted. It is then stored as an unexpected message (at most
// kMaxAside bytes a source), so that tags may be received in any order. The group's lock guards the
// mailbox.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <pccl/types.h>
#include "csrc/abi/wire.h"
#include "csrc/collective/awaited.h"
#include "csrc/comm/links/link_table.h"
#include "csrc/runtime/ended_operations.h"
#include "csrc/runtime/flight/group_usage.h"
#include "csrc/runtime/operation.h"

namespace pccl::comm {

inline constexpr std::size_t kMaxAside = std::size_t{1} << 30;

/// A send or a receive.
class MessageOperation final : public runtime::Operation {
   public:
    enum class Direction : bool { kSend, kReceive };
    struct Envelope {
        Direction direction = Direction::kSend;
        Rank self = 0;
        Rank peer = 0;  // or kAnySource
        std::int32_t tag = 0;
        std::byte* data = nullptr;  // a send does not write to it
        std::size_t bytes = 0;
        std::optional<DataType> type{};
    };

    /// Creates an operation that the flight recorder lists under `flight_group`.
    MessageOperation(const Envelope& envelope, std::uint32_t flight_group)
        : envelope_(envelope), flight_group_(flight_group) {}
    void begin(std::shared_ptr<runtime::ProgressEngine> engine, TimePoint now, Deadline deadline);
    using runtime::Operation::mark_started;

    [[nodiscard]] const Envelope& envelope() const { return envelope_; }
    [[nodiscard]] bool wants(Rank source, std::int32_t tag) const;

    /// Progresses a send. The mailbox progresses receives, because it tracks arrived messages.
    Result<bool> progress(LinkTable& links, bool& moved);
    [[nodiscard]] bool is_flushed() const override { return true; }
    [[nodiscard]] std::string describe() const override;
    [[nodiscard]] AwaitedRanks awaited() const;
    /// Returns whether bytes have moved: cancelling the message now would break the stream.
    [[nodiscard]] bool is_under_way() const { return moved_ > 0; }

   private:
    friend class Mailbox;
    const Envelope envelope_;
    const std::uint32_t flight_group_;
    std::size_t moved_ = 0;  // of header and payload
};

class Mailbox {
   public:
    using MessagePtr = std::shared_ptr<MessageOperation>;

    /// Suspends deadlines while `is_aborted` is set: the group then ends the messages with its own
    /// reason. Counts messages in `usage`. Both must outlive it.
    Mailbox(Rank self, int size, const std::atomic<bool>& is_aborted, runtime::GroupUsage& usage)
        : self_(self),
          is_aborted_(is_aborted),
          usage_(usage),
          sources_(static_cast<std::size_t>(size)),
          outgoing_(static_cast<std::size_t>(size)) {}

    void post(MessagePtr message);
    /// Returns kInvalidArgument for a message to this rank itself when the matching operation is
    /// not posted yet.
    [[nodiscard]] Status check_other_half(const MessageOperation& message) const;
    [[nodiscard]] bool is_idle() const { return pending_ == 0; }
    /// Numbers of messages that this rank has passed to links, and delivered to receives.
    struct MessageCounts {
        std::uint64_t sent = 0;
        std::uint64_t received = 0;
    };
    [[nodiscard]] const MessageCounts& counts() const { return counts_; }
    /// Describes the first pending message. There must be one (see is_idle()).
    [[nodiscard]] std::string describe_first() const;
    /// Makes progress without blocking. Appends messages that have ended to `ended`, with their
    /// status set. An error breaks the group; a message that times out before any byte moved ends
    /// alone.
    Status progress(LinkTable& links, bool& moved, runtime::EndedOperations& ended);
    /// Returns the ranks that pending messages wait for.
    [[nodiscard]] AwaitedRanks awaited() const;
    /// Ends every message with `reason`.
    void fail_all(const Status& reason, runtime::EndedOperations& ended);

   private:
    struct UnexpectedMessage {  // an unexpected message
        abi::MessageHeader header{};
        std::vector<std::byte> bytes;
    };
    struct MessageSource {
        abi::MessageHeader header{};
        std::size_t header_received = 0;
        std::size_t payload_received = 0;
        MessagePtr into;                           // receives the message at the front
        std::unique_ptr<UnexpectedMessage> aside;  // stores it instead if no receive matches
        std::list<UnexpectedMessage> waiting;
        std::size_t waiting_bytes = 0;
        void reset_front();
    };

    Status progress_sends(LinkTable& links, bool& moved, runtime::EndedOperations& ended);
    Status progress_source(Rank rank, LinkTable& links, bool& moved,
                           runtime::EndedOperations& ended);
    Status read_header(Rank rank, MessageSource& source, transport::RecvLink& link, bool& moved);
    void match_front(Rank rank, MessageSource& source, runtime::EndedOperations& ended);
    Status read_payload(Rank rank, MessageSource& source, transport::RecvLink& link, bool& moved,
                        runtime::EndedOperations& ended);
    [[nodiscard]] bool is_wanted(Rank rank) const;
    MessagePtr take_receive(Rank source, std::int32_t tag);
    bool take_waiting(const MessagePtr& receive, runtime::EndedOperations& ended);
    void deliver_to_self(runtime::EndedOperations& ended);
    Status expire(runtime::EndedOperations& ended);
    [[nodiscard]] bool is_past_deadline(const MessageOperation& message) const {
        return message.deadline().passed() && !is_aborted_.load();
    }
    void end(const MessagePtr& message, Status status, Rank source,
             runtime::EndedOperations& ended);
    void count(const MessageOperation& message);
    /// Returns kMismatch if the message that `source` sent does not fit `receive`.
    [[nodiscard]] static Status compare(const MessageOperation& receive, Rank source,
                                        const abi::MessageHeader& sent);

    Rank self_;
    const std::atomic<bool>& is_aborted_;
    runtime::GroupUsage& usage_;
    std::vector<MessageSource> sources_;
    std::vector<std::deque<MessagePtr>> outgoing_;  // by destination
    std::list<MessagePtr> receives_;                // posted, not matched yet
    std::size_t pending_ = 0;
    MessageCounts counts_;
};

}  // namespace pccl::comm
