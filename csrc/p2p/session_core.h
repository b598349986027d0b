// SPDX-License-Identifier: Apache-2.0

// Core of a session: its peers, its connections, and the calls that arrive.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <pccl/session.h>
#include "csrc/base/log/limited_log.h"
#include "csrc/p2p/connection.h"
#include "csrc/p2p/ended_connections.h"
#include "csrc/p2p/inquiries.h"
#include "csrc/p2p/matcher.h"
#include "csrc/p2p/peer_incarnations.h"
#include "csrc/runtime/flight/session_recorder.h"
#include "csrc/runtime/participant.h"
#include "csrc/runtime/runtime.h"
#include "csrc/transport/rma/over_links.h"

namespace pccl::p2p {

[[nodiscard]] inline bool is_there(const Connection& connection) {
    return connection.is_whole() && connection.is_usable();
}

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
    [[nodiscard]] Inbox& inbox() const { return *inbox_; }
    [[nodiscard]] Inquiries& inquiries() const { return *inquiries_; }
    [[nodiscard]] const std::shared_ptr<transport::Waiter>& waiter() const { return waiter_; }

    Status load(const ConnectionInfo& peer);
    [[nodiscard]] Result<SessionId> known(const std::string& peer) const;
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
                                                        const abi::MemoryDescriptor& memory);
    /// Returns the matcher for that incarnation of a peer.
    std::shared_ptr<Matcher> matcher_for(const SessionId& peer);
    Result<std::shared_ptr<TransferRequest>> begin(TransferArgs args);
    /// Implements Session::notify().
    Status send(const std::string& peer, const ControlMessage& message);
    /// Implements Session::accept() without waiting. Returns kAborted once the session is closed.
    Result<std::optional<SessionId>> take_caller(const std::string& peer);
    /// Implements Session::disconnect().
    using Interrupted = std::function<Status()>;
    Status disconnect(const std::string& peer, const Status& reason,
                      const Interrupted& interrupted);
    [[nodiscard]] std::vector<SessionId> peers() const;
    Result<std::shared_ptr<RegisteredMemory>> add(const transport::Memory& memory,
                                                  std::shared_ptr<const void> owner);
    /// Implements Session::allocate().
    Result<std::shared_ptr<RegisteredMemory>> allocate(std::size_t bytes);
    /// Returns the notifications that have arrived since the last call.
    [[nodiscard]] std::vector<Notification> take_notifications();
    /// Returns kInvalidArgument unless the memory is registered with this session.
    [[nodiscard]] Status check_own(const LocalMemory* memory) const;
    /// Returns the number of peers' requests that were refused.
    [[nodiscard]] std::uint64_t refusals() const { return by_messages_->refusals(); }
    Status end(const std::shared_ptr<LocalMemory>& memory);
    /// Implements Session::publish().
    Status publish(const std::string& name, const std::shared_ptr<LocalMemory>& memory);
    /// Makes progress on all connections; returns true if anything moved. Waiting callers use
    /// SessionProgressGuard instead.
    bool progress_all();
    void look_at_all();
    /// Implements Session::close().
    Status close(const Interrupted& interrupted);

    // Participant:

    void accept_link(const transport::LinkRequest& request,
                     std::unique_ptr<transport::RecvLink> link) override;
    void accept_region(const transport::LinkRequest&, std::unique_ptr<transport::Region>) override;
    [[nodiscard]] bool is_busy() const override { return is_busy_.load(); }
    [[nodiscard]] Duration longest_sleep() const override;
    bool progress() override;
    void look_around(Duration idle) override;

   private:
    /// Incoming stream whose handshake has not arrived yet.
    struct Caller {
        std::unique_ptr<transport::RecvLink> link;
        HandshakeReader reader;
        Deadline deadline;
    };
    /// Connection that a peer has made.
    struct Arrival {
        std::shared_ptr<Connection> connection;
        bool is_reported = false;  // by take_caller()

        [[nodiscard]] bool is_there() const { return p2p::is_there(*connection); }
        [[nodiscard]] const SessionId& who() const { return connection->peer().id; }
    };
    using Connections = std::vector<std::shared_ptr<Connection>>;

    SessionCore(const SessionOptions& options, const std::shared_ptr<runtime::Runtime>& runtime);
    Status start(const SessionOptions& options);
    Result<transport::MemoryIdentity> identity_for_memory();
    Status remember(const std::shared_ptr<RegisteredMemory>& memory);
    [[nodiscard]] OwnSide own_side() const;
    /// Returns the bytes of memory from allocate() that have no pages yet.
    [[nodiscard]] std::uint64_t untouched_bytes() const;
    /// Returns kResourceExhausted where the system has less memory left than `bytes` more need.
    [[nodiscard]] Status check_room(std::size_t bytes) const;
    // Under mutex_:
    [[nodiscard]] ConnectionParts parts_for(const SessionId& peer);
    std::shared_ptr<Matcher> matcher_locked(const SessionId& peer);

    [[nodiscard]] Deadline connect_deadline() const { return Deadline::after(connect_timeout_); }

    bool progress_handshakes();
    /// Returns false once the handshake is over, with or without success.
    bool progress_handshake(Caller& caller);
    Status take(HandshakeMessage handshake, std::unique_ptr<transport::RecvLink> link);
    Status take_hello(const Hello& hello, std::unique_ptr<transport::RecvLink> link);
    /// Replaces earlier incarnations by a caller, and closes the connections to them.
    Status admit(const ConnectionInfo& caller);
    Status take_welcome(const Welcome& welcome, std::unique_ptr<transport::RecvLink> link);
    void refuse(const Status& why);
    /// Closes connections to earlier incarnations of a session.
    void displace(const Connections& others, const ConnectionInfo& by);
    /// Adds an event to the flight record.
    void record(runtime::SessionEventKind kind, std::string peer, std::string text) const;

    [[nodiscard]] Connections all_connections() const;
    /// Closes the connections after a limited wait until everything queued for these peers is sent.
    /// An error from `interrupted` ends the wait and is returned.
    Status drain_and_close(const Connections& leaving, const Status& reason,
                           const Interrupted& interrupted);
    /// Waits for drain_and_close().
    Status await_unsent(const Connections& leaving, const Interrupted& interrupted);
    void drop_lost();
    /// Under mutex_: returns a connection that a peer has made and that is not reported yet; null
    /// while there is none.
    [[nodiscard]] std::shared_ptr<Connection> first_unreported() const;
    [[nodiscard]] std::shared_ptr<Connection> first_whole(const std::string& peer) const;
    /// Logs the refusals that were not logged yet.
    void log_refusals();
    /// Under mutex_: returns the first usable one.
    [[nodiscard]] std::shared_ptr<Connection> find(const std::string& peer, bool is_fallback) const;
    /// Under mutex_: returns the connections to an incarnation of a peer that have ended here.
    [[nodiscard]] std::vector<std::uint64_t> ended_with(const SessionId& peer);
    /// Under mutex_: marks the connections that have ended for the caller.
    void leave_ended(const Hello& hello);
    /// Returns ok where processes of this host can copy the memory without help from its owner;
    /// otherwise the reason.
    [[nodiscard]] Status check_reach(const abi::MemoryDescriptor& memory);
    void add_locked(const std::shared_ptr<Connection>& connection);
    /// Under mutex_: puts the peers of removed connections to rest.
    void let_rest(const Connections& gone);
    /// Under mutex_: removes all connections to other incarnations of the session than
    /// `incarnation`.
    [[nodiscard]] Connections take_others(const SessionId& incarnation);

    runtime::Runtime* const runtime_;
    const std::shared_ptr<transport::Waiter> waiter_;
    const Duration connect_timeout_;
    const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
    const std::shared_ptr<Inquiries> inquiries_ = std::make_shared<Inquiries>(waiter_);
    std::shared_ptr<transport::RmaTransport> direct_;  // null: no memory is reached directly
    const std::shared_ptr<transport::RmaOverLinks> by_messages_ =
        std::make_shared<transport::RmaOverLinks>();
    transport::TransportFlags allowed_ = transport::TransportFlags::all();
    ConnectionInfo info_;
    std::atomic<std::uint32_t> registrations_{0};  // so far
    alignas(8) std::uint64_t probed_ = 0;          // the word that peers try to read
    std::shared_ptr<RegisteredMemory> probe_;
    LimitedLog refusals_{"refusals of sessions"};
    std::atomic<std::uint64_t> logged_refusals_{0};

    std::atomic<bool> is_busy_{false};
    mutable std::mutex mutex_;  // guards the members below
    bool closed_ = false;
    PeerIncarnations incarnations_;
    /// Results of check_reach() for GPU memory of peers, by id and nonce.
    std::map<std::pair<std::uint64_t, std::uint64_t>, Status> reachability_;
    std::set<std::shared_ptr<RegisteredMemory>> memories_;
    std::multimap<std::string, std::shared_ptr<Connection>> connections_;
    EndedConnections ended_;  // connections that are no longer in connections_
    std::list<Arrival> arrived_;
    /// Matchers by incarnation of a peer, while there are connections to it.
    std::map<std::pair<std::string, std::uint64_t>, std::weak_ptr<Matcher>> matchers_;
    std::list<Caller> callers_;  // from the acceptor, for the next advance()
    HandoffLock handshake_lock_{
        *waiter_};  // held by the thread that reads handshakes; locked before mutex_
    std::list<Caller> in_handshake_;             // guarded by handshake_lock_
    std::atomic<bool> awaits_handshake_{false};  // whether in_handshake_ has any
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
