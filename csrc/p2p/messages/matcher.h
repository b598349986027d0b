// SPDX-License-Identifier: Apache-2.0

// Matcher of messages with tags between two sessions: it pairs sends and receives.
//
//     receiver                                           sender
//       | -- wanted: tag, number, registered memory ------> |   waits for a send of that tag
//       | <= one-sided write of the message =============== |
//       | <- sent: number, bytes -------------------------- |   follows the bytes
//
// The receiver announces the memory for a message, so that its bytes move once, directly into
// place, and no side buffers unexpected messages. Within a tag, the first send matches the first
// receive. A receive that is given up is withdrawn; the sender answers with the outcome.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <pccl/memory.h>
#include "csrc/p2p/connection/control_message.h"
#include "csrc/p2p/connection/handoff_lock.h"
#include "csrc/p2p/messages/deferred_sends.h"
#include "csrc/p2p/messages/message_request.h"

namespace pccl::p2p {

class Connection;
class TransferRequest;

/// Matcher for one incarnation of one peer, over all connections to it. Thread-safe.
class Matcher final : public ControlReceiver {
   public:
    /// Most messages in progress in each direction.
    static constexpr std::size_t kMost = 1024;

    /// Returns the connection for writes into the peer's memory that a receive on `through` names:
    /// `through` itself, or another one where `through` does not reach that memory.
    using FindConnection = std::function<Result<std::shared_ptr<Connection>>(
        const std::shared_ptr<Connection>& through, const Plan& plan)>;

    Matcher(SessionId peer, std::shared_ptr<transport::Waiter> waiter,
            FindConnection find_connection)
        : peer_(std::move(peer)),
          waiter_(std::move(waiter)),
          find_connection_(std::move(find_connection)) {}
    ~Matcher() override = default;
    Matcher(const Matcher&) = delete;
    Matcher& operator=(const Matcher&) = delete;

    // Call these without locks of connections:

    /// Posts a message. Returns kResourceExhausted where kMost are in progress; the caller then has
    /// to end the use of its memory.
    Status post(const std::shared_ptr<MessageRequest>& request);
    /// Gives a message up. It ends soon, as kAborted or as done.
    void give_up(const std::shared_ptr<MessageRequest>& request);

    // ControlReceiver:

    Status receive(const std::shared_ptr<Connection>& from, ControlMessage message) override;
    void preview(const ControlMessage& message) override;
    void lost(const Connection& connection, const Status& why) override;
    bool advance() override;

   private:
    using MessageRequestPtr = std::shared_ptr<MessageRequest>;
    using ConnectionPtr = std::shared_ptr<Connection>;
    /// Receive that the peer has posted.
    struct PostedReceive {
        ConnectionPtr through;
        Wanted wanted;
    };
    struct Match {
        MessageRequestPtr send;
        PostedReceive place;
    };
    struct PendingWrite {
        Match match;
        std::shared_ptr<TransferRequest> write;
    };

    // Under mutex_:

    Status add_request(const MessageRequestPtr& request);
    void match_tag(std::uint64_t tag);
    void end_request(MessageRequest& request, const Status& status, std::uint64_t bytes = 0);
    bool end_pending_writes();
    Status handle(const ConnectionPtr& from, const Wanted& wanted);
    Status handle(const ConnectionPtr& from, const Sent& sent);
    Status handle(const ConnectionPtr& from, const Failed& failed);
    Status handle(const ConnectionPtr& from, const Withdrawn& withdrawn);
    template <typename Other>
    Status handle(const ConnectionPtr&, const Other&) {
        return Status::internal("a control message of another kind");
    }
    /// Removes and returns the receive that the peer's message names, from any connection; null
    /// where there is none.
    MessageRequestPtr take_receive(std::uint64_t number);

    // Under advancing_ alone:

    void begin_all(std::vector<Match> matches);
    Result<std::shared_ptr<TransferRequest>> begin_write(const Match& match);

    const SessionId peer_;
    const std::shared_ptr<transport::Waiter> waiter_;
    const FindConnection find_connection_;
    DeferredSends deferred_sends_{*waiter_};
    HandoffLock advancing_{*waiter_};  // held by the advancing thread; locked before mutex_
    std::mutex mutex_;                 // locked after those of connections
    std::map<std::uint64_t, std::deque<MessageRequestPtr>> sends_;  // waiting for a receive, by tag
    std::map<std::uint64_t, std::deque<PostedReceive>> places_;     // waiting for a send, by tag
    std::size_t waiting_sends_ = 0;
    std::size_t waiting_places_ = 0;
    std::map<std::uint64_t, MessageRequestPtr> receives_;  // announced to the peer, by number
    std::uint64_t next_number_ = 0;
    std::vector<Match> matches_;  // to be begun
    std::list<PendingWrite> pending_writes_;
};

}  // namespace pccl::p2p
