// Point-to-point messages of a group: tags, any source, any order.
//
// A message is a header and its bytes on the message channel of the link to the receiver. Sends to
// one peer go out in order. A message that has arrived and that nobody asked for stays in its link,
// until a receive for a later one is posted: then it is put aside in memory (at most kMaxAside a
// source), so that tags may be received in any order. Used under the group's lock.
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

#include "csrc/abi/datatype.h"
#include "csrc/abi/wire.h"
#include "csrc/collective/awaited.h"
#include "csrc/comm/links/link_table.h"
#include "csrc/runtime/ended_operations.h"
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
        std::byte* data = nullptr;  // not written by a send
        std::size_t bytes = 0;
        std::optional<DataType> type{};
    };

    /// It is recorded under `flight_group`.
    MessageOperation(const Envelope& envelope, std::uint32_t flight_group)
        : envelope_(envelope), flight_group_(flight_group) {}
    void begin(std::shared_ptr<runtime::ProgressEngine> engine, TimePoint now, Deadline deadline);
    using runtime::Operation::mark_started;

    [[nodiscard]] const Envelope& envelope() const { return envelope_; }
    [[nodiscard]] bool wants(Rank source, std::int32_t tag) const;

    /// Sends; a receive is advanced by the mailbox, which knows what has arrived.
    Result<bool> progress(LinkTable& links, bool& moved);
    [[nodiscard]] bool is_flushed() const override { return true; }
    [[nodiscard]] std::string describe() const override;
    [[nodiscard]] AwaitedRanks awaited() const;
    /// Bytes have moved: giving it up would break the stream.
    [[nodiscard]] bool is_under_way() const { return moved_ > 0; }

   private:
    friend class Mailbox;
    const Envelope envelope_;
    const std::uint32_t flight_group_;
    std::size_t moved_ = 0;  // header and payload
};

class Mailbox {
   public:
    using MessagePtr = std::shared_ptr<MessageOperation>;

    /// `is_aborted`: deadlines pass with it, but what ends the messages is their group, which says
    /// why.
    Mailbox(Rank self, int size, const std::atomic<bool>& is_aborted)
        : self_(self),
          is_aborted_(is_aborted),
          sources_(static_cast<std::size_t>(size)),
          outgoing_(static_cast<std::size_t>(size)) {}

    void post(MessagePtr message);
    /// kInvalidArgument for a message to this rank itself whose other half is not posted yet.
    [[nodiscard]] Status check_other_half(const MessageOperation& message) const;
    [[nodiscard]] bool is_idle() const { return pending_ == 0; }
    /// Messages that this rank has handed to links, and those that it has handed out.
    struct Counts {
        std::uint64_t sent = 0;
        std::uint64_t received = 0;
    };
    [[nodiscard]] const Counts& counts() const { return counts_; }
    /// The first of those that are under way; none: is_idle().
    [[nodiscard]] std::string describe_first() const;
    /// Moves what can move and appends what ended, with its status set, to `ended`. An error breaks
    /// the group; a message that is too late without having begun ends alone.
    Status progress(LinkTable& links, bool& moved, runtime::EndedOperations& ended);
    /// Whom the messages under way wait for.
    [[nodiscard]] AwaitedRanks awaited() const;
    /// Ends every message with `reason`.
    void fail_all(const Status& reason, runtime::EndedOperations& ended);

   private:
    struct Message {  // arrived, and put aside
        abi::MessageHeader header{};
        std::vector<std::byte> bytes;
    };
    struct Source {
        abi::MessageHeader header{};
        std::size_t header_received = 0;
        std::size_t payload_received = 0;
        MessagePtr into;                 // whose memory the message at the front goes to
        std::unique_ptr<Message> aside;  // or this
        std::list<Message> waiting;
        std::size_t waiting_bytes = 0;
        void reset_front();
    };

    Status progress_sends(LinkTable& links, bool& moved, runtime::EndedOperations& ended);
    Status progress_source(Rank rank, LinkTable& links, bool& moved,
                           runtime::EndedOperations& ended);
    Status read_header(Rank rank, Source& source, transport::RecvLink& link, bool& moved);
    void match_front(Rank rank, Source& source, runtime::EndedOperations& ended);
    Status read_payload(Rank rank, Source& source, transport::RecvLink& link, bool& moved,
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
    /// kMismatch where what `source` sent is not what `receive` takes.
    [[nodiscard]] static Status compare(const MessageOperation& receive, Rank source,
                                        const abi::MessageHeader& sent);

    Rank self_;
    const std::atomic<bool>& is_aborted_;
    std::vector<Source> sources_;
    std::vector<std::deque<MessagePtr>> outgoing_;  // by destination
    std::list<MessagePtr> receives_;                // posted, unmatched
    std::size_t pending_ = 0;
    Counts counts_;
};

}  // namespace pccl::comm
