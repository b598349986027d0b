// One connection to another session: transfers that this one asks for, and what it hears.
//
// Who waits for a transfer carries the whole connection on, as the progress thread does;
// relay_lock.h says who of them may sleep.
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
#include "csrc/p2p/approach.h"
#include "csrc/p2p/notification.h"
#include "csrc/p2p/relay_lock.h"
#include "csrc/p2p/task.h"
#include "csrc/p2p/word_listener.h"
#include "csrc/p2p/words.h"
#include "csrc/runtime/flight/session_recorder.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/rma.h"

namespace pccl::p2p {

/// What a connection needs of its session.
struct ConnectionParts {
    std::string session;  // its name
    std::shared_ptr<transport::Waiter> waiter;
    std::shared_ptr<Inbox> inbox;
    std::shared_ptr<WordListener> listener;           // of messages
    std::shared_ptr<WordListener> inquiries;          // of questions and answers
    std::shared_ptr<transport::RmaTransport> direct;  // null: there is none here
    std::shared_ptr<transport::RmaTransport> by_messages;
};

/// Safe from every thread.
class Connection : public std::enable_shared_from_this<Connection> {
   public:
    /// A child of fork() leaves it to its parent.
    static std::shared_ptr<Connection> make(ConnectionParts parts, ConnectionInfo peer,
                                            std::unique_ptr<Approach> approach, Deadline deadline);
    Connection(ConnectionParts parts, ConnectionInfo peer, std::unique_ptr<Approach> approach,
               Deadline deadline);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    [[nodiscard]] const ConnectionInfo& peer() const { return peer_; }
    /// Names it for both ends.
    [[nodiscard]] std::uint64_t number() const { return number_; }
    /// Whether it is for memory that this process or the peer does not copy by itself.
    [[nodiscard]] bool is_aside() const { return is_aside_; }
    [[nodiscard]] transport::Waiter& waiter() const { return *parts_.waiter; }
    [[nodiscard]] WordListener& listener() const { return *parts_.listener; }
    /// Of a call, until it is answered.
    [[nodiscard]] bool awaits(std::uint64_t number);
    void welcomed(const Welcome& welcome, std::unique_ptr<transport::RecvLink> in);

    [[nodiscard]] bool is_whole() const { return whole_.load(std::memory_order_acquire); }
    [[nodiscard]] bool is_lost() const { return lost_.load(std::memory_order_acquire); }
    /// Whether anything new may go by it.
    [[nodiscard]] bool is_usable() const {
        return !is_lost() && !left_.load(std::memory_order_acquire) &&
               !fades_.load(std::memory_order_relaxed);
    }
    /// The peer says that it has ended this one. What it said here before is still heard.
    void leave() { left_.store(true, std::memory_order_release); }
    /// Why, of one that is lost; names the peer. Never kTimeout, which is of who waits.
    [[nodiscard]] Status why_lost() const;
    /// Whether it was lost since it could not be made in time.
    [[nodiscard]] bool was_late() const { return is_lost() && was_late_; }
    /// Of one that is whole.
    [[nodiscard]] const Path& path() const { return path_; }

    /// Begins a transfer, which small ones end at once.
    std::shared_ptr<Task> begin(Order order);
    /// kResourceExhausted when too many words are waiting to be sent.
    Status say(const PeerWord& word);
    /// Goes on, unless other threads are at it or attend to it, and wake this process then; true
    /// when something moved: then there may be more to do at once.
    bool try_carry();
    /// How long nobody need look at it who is not woken.
    [[nodiscard]] Duration longest_sleep();
    /// The same of a thread that attends to it.
    [[nodiscard]] Duration longest_pause() const;
    /// Finds out whether the peer is gone; a system call.
    void look();
    /// The same, with all that has come by now.
    void listen();
    /// Before close(): transfers that are not on their way fail with `reason`.
    void wind_up(const Status& reason);
    /// Whether it has taken notifications that have not left.
    [[nodiscard]] bool has_unsaid();
    /// Ends all that is under way with `reason`, and tells the peer.
    void close(const Status& reason);

   private:
    /// Posted at once, or heard of.
    static constexpr std::size_t kBatch = 128;
    static constexpr std::size_t kOrderedBatch = 1000;

    bool carry_locked(const Task* awaited);
    /// As carry_locked(), of a thread that does not come back: others go on if need be.
    void carry_once(const Task* awaited);
    /// Of a thread that leaves it to others.
    Duration nap();
    void look_locked();
    void fade();
    /// So that a transfer does not begin on what has ended; where that costs little.
    void hear_first();
    void begin_locked(const std::shared_ptr<Task>& task);
    /// Whether nothing goes on before there are news, which wake this process.
    [[nodiscard]] bool is_at_rest() const;
    void arrive();
    bool post_waiting();
    /// A read that keeps the order of a stream: beside those that wait.
    void begin_in_order(const std::shared_ptr<Task>& task);
    Status post_in_order(const std::shared_ptr<Task>& task);
    /// False when the link has no room.
    Result<bool> post_some(const std::shared_ptr<Task>& task);
    Result<bool> post_run(const std::shared_ptr<Task>& task, const transport::RmaRun& run);
    /// What the link has just taken.
    void took_off(const std::shared_ptr<Task>& task);
    /// Hears and says what there is; whether anything moved.
    Result<bool> exchange();
    Status hear_completions();
    void land(const transport::RmaCompletion& completion);
    [[nodiscard]] Status cause_of(const Status& failure);
    /// Whether there were any.
    Result<bool> hear_words();
    /// Words that are still to be heard.
    void foresee_words();
    /// Those that had come before it was lost, for which there is room or not.
    void hear_last_words();
    /// False when there is none.
    Result<bool> hear_word();
    [[nodiscard]] WordListener& listener_of(const PeerWord& word) const;
    void finish(const std::shared_ptr<Task>& task);
    /// Its memory is not used any more, and the flight record has its end.
    void end(Task& task) const;
    void record(runtime::SessionEventKind kind, std::string text = {}) const;
    void lose(const Status& why);
    [[nodiscard]] Status described(const Status& why) const;

    friend class Attendance;

    const ConnectionParts parts_;  // first: links need the waiter to their end
    const ConnectionInfo peer_;
    const std::uint64_t number_;
    const bool is_aside_;
    const std::uint32_t pair_;            // of the flight record
    const Deadline deadline_;             // of the approach
    RelayLock mutex_;                     // guards all below but for the atomics
    std::unique_ptr<Approach> approach_;  // until it is whole
    std::unique_ptr<transport::RmaLink> link_;
    Path path_;                                              // before whole_
    std::deque<std::shared_ptr<Task>> waiting_;              // not all posted
    std::map<std::uint64_t, std::shared_ptr<Task>> flying_;  // by their post
    bool awaits_stream_ = false;                             // the first of those that wait
    bool may_hear_more_ = false;                             // when it last was carried on
    std::uint64_t posts_ = 0;                                // so far
    const Task* awaited_ = nullptr;                          // by the thread in here
    // Of one step; kept, for to clear them takes longer than a small transfer.
    std::array<Plan::Step, kBatch> steps_;
    std::array<transport::RmaPiece, kBatch> pieces_;
    std::array<transport::RmaCompletion, kBatch> completions_;
    Words words_;
    Status why_lost_;        // before lost_
    bool was_late_ = false;  // likewise
    std::atomic<bool> whole_{false};
    std::atomic<bool> lost_{false};
    std::atomic<bool> left_{false};        // by the peer, whose end has not come
    std::atomic<bool> awaits_gpu_{false};  // when it was last carried on: copies, or a stream
    std::atomic<bool> fades_{false};       // the peer is gone, but for what it may have said before
    std::atomic<int> attendances_{0};
    std::atomic<std::uint64_t> begun_attendances_{0};
    // Of the progress thread:
    std::uint64_t napped_for_ = 0;  // how many had begun when its last nap did
    TimePoint nap_end_{};
    std::atomic<bool> passed_over_{false};  // by another thread, for somebody attends to it
};

/// Of a thread that carries a connection on until it has what it waits for. Other threads leave the
/// connection to it meanwhile: the progress thread, which news of the peer wake as well, would hold
/// it up.
class Attendance {
   public:
    explicit Attendance(Connection& connection) : connection_(connection) {
        connection_.attendances_.fetch_add(1);
        connection_.begun_attendances_.fetch_add(1, std::memory_order_relaxed);
    }
    /// Looks once more for those who left it to this one, if any, and hands on what there is.
    ~Attendance();
    Attendance(const Attendance&) = delete;
    Attendance& operator=(const Attendance&) = delete;

    /// Goes on, unless another thread is at it; true when something moved. The end of `awaited` (or
    /// null) wakes nobody: it is what this thread waits for.
    bool carry(const Task* awaited = nullptr);
    /// As Connection::look().
    void look();
    /// Calls `carry()`, which tells whether anything moved, until `is_done()`. Returns when
    /// `deadline` has passed, also while things move.
    template <typename Carry, typename Predicate>
    void carry_until(Deadline deadline, const Carry& carry, const Predicate& is_done) {
        transport::Backoff backoff(connection_.waiter());
        while (!is_done()) {
            const bool moved = carry();
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
