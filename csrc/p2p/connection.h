// One connection to another session: transfers that this one asks for, and what it receives.
//
// Who waits for a transfer makes progress on the whole connection, as the progress thread does;
// handoff_lock.h says who of them may sleep.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "csrc/base/fork.h"
#include "csrc/p2p/connection_setup.h"
#include "csrc/p2p/control_queue.h"
#include "csrc/p2p/control_receiver.h"
#include "csrc/p2p/handoff_lock.h"
#include "csrc/p2p/notification.h"
#include "csrc/p2p/transfer_request.h"
#include "csrc/runtime/flight/session_recorder.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/rma.h"

namespace pccl::p2p {

/// What a connection needs of its session.
struct ConnectionParts {
    std::string session;  // its name
    std::shared_ptr<transport::Waiter> waiter;
    std::shared_ptr<Inbox> inbox;
    std::shared_ptr<ControlReceiver> receiver;        // of messages
    std::shared_ptr<ControlReceiver> inquiries;       // of questions and answers
    std::shared_ptr<transport::RmaTransport> direct;  // null: there is none here
    std::shared_ptr<transport::RmaTransport> by_messages;
};

/// Safe from every thread.
class Connection : public std::enable_shared_from_this<Connection> {
   public:
    /// A child of fork() leaves it to its parent.
    static std::shared_ptr<Connection> make(ConnectionParts parts, ConnectionInfo peer,
                                            std::unique_ptr<ConnectionSetup> setup,
                                            Deadline deadline);
    Connection(ConnectionParts parts, ConnectionInfo peer, std::unique_ptr<ConnectionSetup> setup,
               Deadline deadline);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    [[nodiscard]] const ConnectionInfo& peer() const { return peer_; }
    /// Names it for both ends.
    [[nodiscard]] std::uint64_t number() const { return number_; }
    /// Whether it is for memory that this process or the peer does not copy by itself.
    [[nodiscard]] bool is_fallback() const { return is_fallback_; }
    [[nodiscard]] transport::Waiter& waiter() const { return *parts_.waiter; }
    [[nodiscard]] ControlReceiver& receiver() const { return *parts_.receiver; }
    /// Of a call, until it is answered.
    [[nodiscard]] bool awaits(std::uint64_t number);
    void welcomed(const Welcome& welcome, std::unique_ptr<transport::RecvLink> in);

    [[nodiscard]] bool is_whole() const { return whole_.load(std::memory_order_acquire); }
    [[nodiscard]] bool is_lost() const { return lost_.load(std::memory_order_acquire); }
    /// Whether anything new may go by it.
    [[nodiscard]] bool is_usable() const {
        return !is_lost() && !left_.load(std::memory_order_acquire) &&
               !half_closed_.load(std::memory_order_relaxed);
    }
    /// The peer says that it has ended this one. What it sent here before is still received.
    void leave() { left_.store(true, std::memory_order_release); }
    /// Why, of one that is lost; names the peer. Never kTimeout, which is of who waits.
    [[nodiscard]] Status why_lost() const;
    /// Whether it was lost since it could not be made in time.
    [[nodiscard]] bool timed_out() const { return is_lost() && timed_out_; }
    /// Of one that is whole.
    [[nodiscard]] const Route& route() const { return route_; }

    /// Begins a transfer, which small ones end at once.
    std::shared_ptr<TransferRequest> begin(TransferArgs args);
    /// kResourceExhausted when too many messages are waiting to be sent.
    Status send(const ControlMessage& message);
    /// Goes on, unless other threads are at it or hold a ProgressGuard, and wake this process then;
    /// true when something moved: then there may be more to do at once.
    bool try_progress();
    /// How long nobody need look at it who is not woken.
    [[nodiscard]] Duration longest_sleep();
    /// The same of a thread that holds a ProgressGuard.
    [[nodiscard]] Duration longest_pause() const;
    /// Finds out whether the peer is gone; a system call.
    void look();
    /// The same, with all that has come by now.
    void drain();
    /// Before close(): transfers that are not on their way fail with `reason`.
    void stop_posting(const Status& reason);
    /// Whether it has taken notifications that have not left.
    [[nodiscard]] bool has_unsent();
    /// Ends all that is under way with `reason`, and tells the peer.
    void close(const Status& reason);

   private:
    /// Posted or received at once.
    static constexpr std::size_t kBatch = 128;
    static constexpr std::size_t kOrderedBatch = 1000;

    bool progress_locked(const TransferRequest* awaited);
    /// As progress_locked(), of a thread that does not come back: others go on if need be.
    void progress_once(const TransferRequest* awaited);
    /// Of a thread that leaves it to others.
    Duration idle_sleep();
    void look_locked();
    void half_close();
    /// So that a transfer does not begin on what has ended; where that costs little.
    void drain_idle();
    void begin_locked(const std::shared_ptr<TransferRequest>& request);
    /// Whether nothing goes on before there are news, which wake this process.
    [[nodiscard]] bool is_at_rest() const;
    void arrive();
    bool post_waiting();
    /// A read that keeps the order of a stream: beside those that wait.
    void begin_in_order(const std::shared_ptr<TransferRequest>& request);
    Status post_in_order(const std::shared_ptr<TransferRequest>& request);
    /// False when the link has no room.
    Result<bool> post_some(const std::shared_ptr<TransferRequest>& request);
    Result<bool> post_run(const std::shared_ptr<TransferRequest>& request,
                          const transport::RmaRun& run);
    /// What the link has just taken.
    void note_posted(const std::shared_ptr<TransferRequest>& request);
    /// Receives and sends what there is; whether anything moved.
    Result<bool> exchange();
    Status poll_completions();
    void complete(const transport::RmaCompletion& completion);
    [[nodiscard]] Status cause_of(const Status& failure);
    /// Whether there were any.
    Result<bool> receive_messages();
    /// Messages that are still to be received.
    void preview_messages();
    /// Those that had come before it was lost, for which there is room or not.
    void receive_last_messages();
    /// False when there is none.
    Result<bool> receive_message();
    [[nodiscard]] ControlReceiver& receiver_of(const ControlMessage& message) const;
    void finish(const std::shared_ptr<TransferRequest>& request);
    /// Its memory is not used any more, and the flight record has its end.
    void end(TransferRequest& request) const;
    void record(runtime::SessionEventKind kind, std::string text = {}) const;
    void lose(const Status& why);
    [[nodiscard]] Status described(const Status& why) const;

    friend class ProgressGuard;

    const ConnectionParts parts_;  // first: links need the waiter to their end
    const ConnectionInfo peer_;
    const std::uint64_t number_;
    const bool is_fallback_;
    const std::uint32_t pair_;                // of the flight record
    const Deadline deadline_;                 // of the setup
    HandoffLock mutex_;                       // guards all below but for the atomics
    std::unique_ptr<ConnectionSetup> setup_;  // until it is whole
    std::unique_ptr<transport::RmaLink> link_;
    Route route_;                                                          // before whole_
    std::deque<std::shared_ptr<TransferRequest>> waiting_;                 // not all posted
    std::map<std::uint64_t, std::shared_ptr<TransferRequest>> in_flight_;  // by their post
    bool awaits_stream_ = false;                // the first of those that wait
    bool may_receive_more_ = false;             // when it last made progress
    std::uint64_t posts_ = 0;                   // so far
    const TransferRequest* awaited_ = nullptr;  // by the thread in here
    // Of one step; kept, for to clear them takes longer than a small transfer.
    std::array<Plan::PlanStep, kBatch> steps_;
    std::array<transport::RmaPiece, kBatch> pieces_;
    std::array<transport::RmaCompletion, kBatch> completions_;
    ControlQueue messages_;
    Status why_lost_;         // before lost_
    bool timed_out_ = false;  // likewise
    std::atomic<bool> whole_{false};
    std::atomic<bool> lost_{false};
    std::atomic<bool> left_{false};         // by the peer, whose end has not come
    std::atomic<bool> awaits_gpu_{false};   // when it last made progress: copies, or a stream
    std::atomic<bool> half_closed_{false};  // what the peer sent before may still come
    std::atomic<int> guards_{0};
    std::atomic<std::uint64_t> begun_guards_{0};
    // Of the progress thread:
    std::uint64_t idled_for_ = 0;  // how many had begun at its last idle sleep
    TimePoint idle_end_{};
    std::atomic<bool> passed_over_{false};  // by another thread, for somebody holds a ProgressGuard
};

/// Of a thread that makes progress on a connection until it has what it waits for. Other threads
/// leave the connection to it meanwhile: the progress thread, which news of the peer wake as well,
/// would hold it up.
class ProgressGuard {
   public:
    explicit ProgressGuard(Connection& connection) : connection_(connection) {
        connection_.guards_.fetch_add(1);
        connection_.begun_guards_.fetch_add(1, std::memory_order_relaxed);
    }
    /// Looks once more for those who left it to this one, if any, and hands on what there is.
    ~ProgressGuard();
    ProgressGuard(const ProgressGuard&) = delete;
    ProgressGuard& operator=(const ProgressGuard&) = delete;

    /// Goes on, unless another thread is at it; true when something moved. The end of `awaited` (or
    /// null) wakes nobody: it is what this thread waits for.
    bool progress(const TransferRequest* awaited = nullptr);
    /// As Connection::look().
    void look();
    /// Calls `progress()`, which tells whether anything moved, until `is_done()`. Returns when
    /// `deadline` has passed, also while things move.
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
