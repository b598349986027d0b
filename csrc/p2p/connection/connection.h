// SPDX-License-Identifier: Apache-2.0

// Connection to one other session: the transfers that this session begins, and the messages that it
// receives.
//
// A thread that waits for a transfer makes progress on the whole connection, as the progress thread
// does. The rule in handoff_lock.h decides which of these threads may sleep.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "csrc/base/fork.h"
#include "csrc/p2p/connection/connection_setup.h"
#include "csrc/p2p/connection/connection_state.h"
#include "csrc/p2p/connection/control_message.h"
#include "csrc/p2p/connection/control_queue.h"
#include "csrc/p2p/connection/handoff_lock.h"
#include "csrc/p2p/connection/inbox.h"
#include "csrc/p2p/connection/lanes.h"
#include "csrc/p2p/connection/transfer_queue.h"
#include "csrc/p2p/transfers/transfer_request.h"
#include "csrc/runtime/flight/session_recorder.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/rma.h"
#include "csrc/transport/rma/over_links.h"
#include "csrc/transport/sticky_status.h"

namespace pccl::p2p {

/// Parts of a session that its connections use.
struct ConnectionParts {
    std::string session;  // name of the session
    std::shared_ptr<transport::Waiter> waiter;
    std::shared_ptr<Inbox> inbox;
    std::shared_ptr<ControlReceiver> receiver;   // of messages with tags
    std::shared_ptr<ControlReceiver> inquiries;  // of inquiries and their answers
    /// Transports by which this process reaches peers' memory without their programs.
    std::map<transport::TransportKind, std::shared_ptr<transport::RmaTransport>> direct;
    std::shared_ptr<transport::RmaOverLinks> by_messages;
    transport::Transport* tcp = nullptr;  // for lanes; null: there are none
    std::shared_ptr<LaneBudget> lane_budget;
    Duration connect_timeout{};  // of lanes
};

/// Connection to one peer. Thread-safe.
class Connection : public std::enable_shared_from_this<Connection> {
   public:
    /// Makes a connection. A child of fork() leaves it to its parent: its destructor does not run
    /// there.
    static std::shared_ptr<Connection> make(ConnectionParts parts, ConnectionInfo peer,
                                            std::unique_ptr<ConnectionSetup> setup,
                                            Deadline deadline);
    Connection(ConnectionParts parts, ConnectionInfo peer, std::unique_ptr<ConnectionSetup> setup,
               Deadline deadline);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    [[nodiscard]] const ConnectionInfo& peer() const { return peer_; }
    /// Returns the number that names the connection at both ends.
    [[nodiscard]] std::uint64_t number() const { return number_; }
    /// Returns whether this is the fallback connection, for memory that this process or the peer
    /// cannot copy by itself.
    [[nodiscard]] bool is_fallback() const { return is_fallback_; }
    [[nodiscard]] transport::Waiter& waiter() const { return *parts_.waiter; }
    [[nodiscard]] ControlReceiver& receiver() const { return *parts_.receiver; }
    /// Returns whether a connection that this side called has that number and is not answered yet.
    [[nodiscard]] bool awaits(std::uint64_t number);
    void welcomed(const Welcome& welcome, std::unique_ptr<transport::RecvLink> in);
    /// Takes the stream of a lane that the peer has opened.
    void greeted(const LaneGreeting& greeting, std::unique_ptr<transport::RecvLink> in);
    /// Ends the setup with `why` at its next progress, if it awaits the peer's answer then: this
    /// process lacks resources to take it. Takes no lock.
    void fall_short(const Status& why) { static_cast<void>(shortage_.set(why)); }

    [[nodiscard]] bool is_whole() const { return state_.is_whole(); }
    [[nodiscard]] bool is_lost() const { return state_.is_lost(); }
    /// Returns whether new transfers and messages may use the connection.
    [[nodiscard]] bool is_usable() const { return state_.is_usable(); }
    /// Marks the connection as ended by the peer. Messages that the peer sent before are still
    /// received.
    void mark_left() { state_.mark_left(); }
    /// Returns why a lost connection was lost; the error names the peer. It is never kTimeout,
    /// which is reserved for the caller's own deadline.
    [[nodiscard]] Status why_lost() const { return state_.why_lost(); }
    /// Returns whether the connection was lost because it was not made in time.
    [[nodiscard]] bool timed_out() const { return state_.timed_out(); }
    /// Returns the route. Valid once the connection is_whole().
    [[nodiscard]] const ConnectionRoute& route() const { return route_; }
    [[nodiscard]] LaneReport lane_report();

    /// Begins a transfer. A small one may be complete on return.
    std::shared_ptr<TransferRequest> begin_transfer(TransferArgs args);
    /// Queues a message. Returns kResourceExhausted when too many messages wait to be sent.
    Status send_message(const ControlMessage& message);
    /// Makes progress unless another thread does so or holds a ProgressGuard; that thread then
    /// wakes this process. Returns true if anything moved: call again before sleeping.
    bool try_progress();
    /// Returns how long the progress thread may sleep before it polls the connection again, unless
    /// woken.
    [[nodiscard]] Duration longest_sleep();
    /// Returns how long a thread that holds a ProgressGuard may sleep.
    [[nodiscard]] Duration longest_pause() const;
    /// Checks whether the peer is gone. Costs a system call.
    void look();
    /// Checks whether the peer is gone, and receives everything that has arrived so far.
    void drain();
    /// Fails the transfers that are not on their way with `reason`. Call it before close().
    void stop_posting(const Status& reason);
    /// Returns whether queued messages have not been sent yet.
    [[nodiscard]] bool has_unsent();
    /// Fails everything in progress with `reason`, and notifies the peer.
    void close(const Status& reason);

   private:
    /// Most completions that are polled, or messages that are received, in one step.
    static constexpr std::size_t kBatch = 128;

    bool progress_locked(const TransferRequest* awaited);
    /// Makes progress as progress_locked() does, for a thread that does not come back: it wakes
    /// other threads if more is left to do.
    void progress_once(const TransferRequest* awaited);
    void look_locked();
    void half_close() {
        if (!state_.half_close()) waiter().wake();
    }
    /// Receives the end of the connection if it has arrived, so that no transfer begins on an ended
    /// connection. Does so only where that is cheap.
    void drain_idle();
    void begin_locked(const std::shared_ptr<TransferRequest>& request);
    /// Returns whether the connection can make no progress before an event that wakes this process.
    [[nodiscard]] bool is_at_rest() const;
    void advance_setup();
    /// Connects one-sided access by the streams of the setup.
    Result<std::unique_ptr<transport::RmaLink>> connect_link();
    bool post_waiting();
    /// Begins a read in stream order. It bypasses the queue of waiting transfers.
    void begin_in_order(const std::shared_ptr<TransferRequest>& request);
    /// Sends and receives as far as possible; returns whether anything moved.
    Result<bool> exchange_data();
    Status poll_completions();
    void complete_post(const transport::RmaCompletion& completion);
    [[nodiscard]] Status cause_of(const Status& failure);
    /// Returns whether any message was received.
    Result<bool> receive_messages();
    /// Passes messages that cannot be received yet to their receivers' preview().
    void preview_messages();
    /// Receives the messages that arrived before the connection was lost, even beyond the room for
    /// them.
    void receive_last_messages();
    /// Returns false when no message is there.
    Result<bool> receive_message();
    [[nodiscard]] ControlReceiver& receiver_of(const ControlMessage& message) const;
    void finish_transfer(const std::shared_ptr<TransferRequest>& request);
    /// Releases the use of the transfer's memory, and completes its flight record.
    void end_transfer(TransferRequest& request) const;
    void record(runtime::SessionEventKind kind, std::string text = {}) const;
    void lose(const Status& why);
    [[nodiscard]] Status described(const Status& why) const;

    friend class ProgressGuard;

    const ConnectionParts parts_;  // first: links need the waiter until their end
    const ConnectionInfo peer_;
    const std::uint64_t number_;
    const bool is_fallback_;
    const std::uint32_t pair_;                // in the flight record
    const Deadline deadline_;                 // of the setup
    HandoffLock mutex_;                       // guards the members below
    std::unique_ptr<ConnectionSetup> setup_;  // null once the connection is whole
    std::unique_ptr<transport::RmaLink> link_;
    ConnectionRoute route_;  // written before the connection is whole
    Lanes lanes_;            // of link_
    bool wants_lanes_ = false;
    TransferQueue transfers_;
    ControlQueue messages_;
    bool awaits_stream_ = false;                // the first waiting transfer waits for a stream
    bool may_receive_more_ = false;             // as of the last progress
    const TransferRequest* awaited_ = nullptr;  // by the thread that holds mutex_
    // Buffer of one step. It is a member because clearing it takes longer than a small transfer.
    std::array<transport::RmaCompletion, kBatch> completions_;
    // Not guarded by mutex_ alone:
    ConnectionState state_;
    transport::StickyStatus shortage_;
    std::atomic<bool> awaits_gpu_{false};  // as of the last progress: waits for copies or a stream
    ProgressGuards guards_;
};

/// Guard of a thread that makes progress on a connection until its transfer is done. Other threads
/// leave the connection to it meanwhile. Without it, the progress thread, which the peer's doorbell
/// wakes as well, would contend for the lock.
class ProgressGuard {
   public:
    explicit ProgressGuard(Connection& connection) : connection_(connection) {
        connection_.guards_.add_guard();
    }
    /// Polls once more for the threads that yielded to this one, if any, and wakes them if there is
    /// more to do.
    ~ProgressGuard();
    ProgressGuard(const ProgressGuard&) = delete;
    ProgressGuard& operator=(const ProgressGuard&) = delete;

    /// Makes progress unless another thread does; returns true if anything moved. The completion of
    /// `awaited` (may be null) wakes no other thread, because this thread waits for it.
    bool progress(const TransferRequest* awaited = nullptr);
    /// Checks whether the peer is gone, as Connection::look() does.
    void look();
    /// Calls `progress()`, which returns whether anything moved, until `is_done()`. Returns once
    /// `deadline` has passed, even while data moves.
    template <typename Progress, typename Predicate>
    void progress_until(Deadline deadline, const Progress& progress, const Predicate& is_done) {
        transport::Backoff backoff(connection_.waiter());
        while (!is_done()) {
            const bool moved = progress();
            if (is_done() || deadline.passed()) return;
            if (moved) {
                backoff.reset();
                continue;
            }
            backoff.pause(connection_.longest_pause());
            if (backoff.slept()) look();
        }
    }

   private:
    Connection& connection_;
};

}  // namespace pccl::p2p
