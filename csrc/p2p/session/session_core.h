// SPDX-License-Identifier: Apache-2.0

// Core of a session: its peers, its connections, and the calls that arrive.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <pccl/session.h>
#include "csrc/p2p/connection/connection.h"
#include "csrc/p2p/messages/inquiries.h"
#include "csrc/p2p/messages/matcher.h"
#include "csrc/p2p/session/listener.h"
#include "csrc/p2p/session/memory_registry.h"
#include "csrc/p2p/session/peer_table.h"
#include "csrc/p2p/session/session_lock.h"
#include "csrc/p2p/session/session_log.h"
#include "csrc/runtime/participant.h"
#include "csrc/runtime/runtime.h"

namespace pccl::p2p {

struct ChosenConnection {
    std::shared_ptr<Connection> connection;
    bool is_new = false;  // begun for this request
};

class SessionCore final : public runtime::Participant,
                          public std::enable_shared_from_this<SessionCore> {
   public:
    /// `runtime` must outlive close().
    static Result<std::shared_ptr<SessionCore>> create(
        const SessionOptions& options, const std::shared_ptr<runtime::Runtime>& runtime);

    [[nodiscard]] const ConnectionInfo& info() const { return info_; }
    [[nodiscard]] Inquiries& inquiries() const { return *inquiries_; }
    [[nodiscard]] const std::shared_ptr<transport::Waiter>& waiter() const { return waiter_; }
    [[nodiscard]] MemoryRegistry& memory() { return memory_; }
    [[nodiscard]] const MemoryRegistry& memory() const { return memory_; }

    Status load(const ConnectionInfo& peer);
    [[nodiscard]] Result<SessionId> id_of(const std::string& peer) const;
    /// Returns a connection to that incarnation of the peer (null: any), which may still be in
    /// setup. An error in `reachable` requests a fallback connection, for memory that peers do not
    /// copy by themselves.
    Result<ChosenConnection> connection_to(const std::string& peer,
                                           const SessionId* incarnation = nullptr,
                                           const Status& reachable = Status::ok());
    /// Returns the connection for a plan's blocks, or for the announcement of a message.
    Result<ChosenConnection> connection_for(const Plan& plan);
    Result<std::shared_ptr<Connection>> connection_for(const std::string& peer,
                                                       const MessageArgs& args);
    /// Implements Matcher::FindConnection.
    Result<std::shared_ptr<Connection>> connection_into(const std::shared_ptr<Connection>& through,
                                                        const Plan& plan);
    [[nodiscard]] Status check_reach(const Plan& plan);
    /// Returns the matcher for that incarnation of a peer.
    std::shared_ptr<Matcher> matcher_for(const SessionId& peer);
    Result<std::shared_ptr<TransferRequest>> begin_transfer(TransferArgs args);
    /// Implements Session::notify().
    Status send_message(const std::string& peer, const ControlMessage& message);
    /// Implements Session::accept() without waiting. Returns kAborted once the session is closed.
    Result<std::optional<SessionId>> take_caller(const std::string& peer);
    /// Implements Session::disconnect().
    using Interrupted = std::function<Status()>;
    Status disconnect(const std::string& peer, const Status& reason,
                      const Interrupted& interrupted);
    [[nodiscard]] std::vector<SessionId> peers() const;
    /// Returns the notifications that have arrived since the last call.
    [[nodiscard]] std::vector<Notification> take_notifications();
    /// Makes progress on all connections; returns true if anything moved. Waiting callers use
    /// SessionProgressGuard instead.
    bool progress_all();
    /// Implements Session::close().
    Status close(const Interrupted& interrupted);

    // Participant:

    void accept_link(const transport::LinkRequest& request,
                     std::unique_ptr<transport::RecvLink> link) override;
    void accept_region(const transport::LinkRequest&, std::unique_ptr<transport::Region>) override {
        log_.refuse_connection(Status::unsupported("sessions share no regions"));
    }
    /// Ends the calls that await an answer: it would arrive by another connection.
    void fall_short(const Status& why) override;
    [[nodiscard]] bool is_busy() const override { return is_busy_.load(); }
    [[nodiscard]] Duration longest_sleep() const override;
    bool progress() override;
    void look_around(Duration idle) override;

   private:
    using Connections = PeerTable::Connections;

    SessionCore(const SessionOptions& options, const std::shared_ptr<runtime::Runtime>& runtime);
    Status start(const SessionOptions& options);
    [[nodiscard]] OwnSide own_side() const {
        return {*runtime_, info_, allowed_, bootstrap::CoreClaim::of_process()};
    }
    // Under lock_:
    [[nodiscard]] ConnectionParts parts_for(const SessionId& peer);
    std::shared_ptr<Matcher> matcher_locked(const SessionId& peer);

    [[nodiscard]] Deadline connect_deadline() const { return Deadline::after(connect_timeout_); }

    Status take_handshake(HandshakeMessage handshake, std::unique_ptr<transport::RecvLink> link);
    Status take_hello(const Hello& hello, std::unique_ptr<transport::RecvLink> link);
    /// Replaces earlier incarnations by a caller, and closes the connections to them.
    Status admit_caller(const ConnectionInfo& caller);
    Status take_welcome(const Welcome& welcome, std::unique_ptr<transport::RecvLink> link);
    Status take_lane(const LaneGreeting& greeting, std::unique_ptr<transport::RecvLink> link);
    /// Closes connections to earlier incarnations of a session.
    void displace_connections(const Connections& others, const ConnectionInfo& by);

    [[nodiscard]] Connections all_connections() const {
        const std::lock_guard lock(lock_.mutex);
        return peers_.all();
    }
    /// Closes the connections after a limited wait until everything queued for these peers is sent.
    /// An error from `interrupted` ends the wait and is returned.
    Status drain_and_close(const Connections& leaving, const Status& reason,
                           const Interrupted& interrupted);
    /// Waits for drain_and_close().
    Status await_unsent(const Connections& leaving, const Interrupted& interrupted);
    void drop_lost();
    /// Under lock_: adds a connection, and wakes the threads that make progress on it.
    void add_locked(const std::shared_ptr<Connection>& connection);
    /// Wakes the progress thread and waiting callers.
    void wake_threads();

    runtime::Runtime* const runtime_;
    const std::shared_ptr<transport::Waiter> waiter_;
    const Duration connect_timeout_;
    const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
    const std::shared_ptr<Inquiries> inquiries_ = std::make_shared<Inquiries>(waiter_);
    const std::shared_ptr<LaneBudget> lane_budget_;
    transport::TransportFlags allowed_ = transport::TransportFlags::all();
    ConnectionInfo info_;
    SessionLog log_;
    std::atomic<bool> is_busy_{false};
    mutable SessionLock lock_;
    MemoryRegistry memory_;
    PeerTable peers_;  // guarded by lock_
    Listener listener_;
};

/// Guard of a thread that makes progress on all connections of a session while it waits. At its
/// end, other threads take over the rest.
class SessionProgressGuard {
   public:
    explicit SessionProgressGuard(SessionCore& core) : core_(core) {}
    ~SessionProgressGuard() {
        if (moved_) core_.waiter()->wake();
    }
    SessionProgressGuard(const SessionProgressGuard&) = delete;
    SessionProgressGuard& operator=(const SessionProgressGuard&) = delete;

    bool progress() { return moved_ = core_.progress_all(); }

   private:
    SessionCore& core_;
    bool moved_ = false;  // in the last call
};

/// Makes progress on all connections of a session until `is_done()`. Returns false where `deadline`
/// passes first.
template <typename Predicate>
bool progress_until(SessionCore& core, Deadline deadline, const Predicate& is_done) {
    SessionProgressGuard guard(core);
    transport::Backoff backoff(*core.waiter());
    while (!is_done()) {
        const bool moved = guard.progress();
        if (deadline.passed()) return is_done();
        if (moved)
            backoff.reset();
        else
            backoff.pause();
    }
    return true;
}

}  // namespace pccl::p2p
