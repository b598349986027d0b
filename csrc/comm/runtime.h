// What the groups of one process share: its transports, its sleep, and two background threads.
//
// The acceptor accepts connections whenever peers make them. It never waits for anything else, so
// that connecting cannot deadlock, however many ranks connect to one another at once. The progress
// thread, started by the first asynchronous operation, carries on operations that nobody waits for.
// Both sleep in the kernel while there is nothing to do.
#pragma once

#include <atomic>
#include <compare>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/background_thread.h"
#include "csrc/base/fork.h"
#include "csrc/base/limited_log.h"
#include "csrc/base/unique_fd.h"
#include "csrc/bootstrap/endpoint.h"
#include "csrc/comm/diagnosis/situation.h"
#include "csrc/runtime/flight/flight_dump.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/transport.h"

namespace pccl::comm {

/// Which of a group's ranks that rank of the job is; kNoRank: none.
[[nodiscard]] Rank place_of(std::uint64_t global_rank, std::span<const std::uint64_t> global_ranks);

/// A group as its runtime sees it.
class Participant {
   public:
    virtual ~Participant() = default;
    /// On the acceptor: must not wait for a lock that somebody holds while the group is made.
    virtual void accept_link(const transport::LinkRequest& request,
                             std::unique_ptr<transport::RecvLink> link) = 0;
    virtual void accept_region(const transport::LinkRequest& request,
                               std::unique_ptr<transport::Region> region) = 0;
    /// A rank tells why it has left; on the acceptor, as accept_link().
    virtual void hear(Rank /*from*/, const Status& /*reason*/) {}
    /// This process lacks what a peer's connection takes; on the acceptor, as accept_link().
    virtual void fall_short(const Status& /*why*/) {}
    /// How this rank fares in the group, for another that asks; on the acceptor, as accept_link().
    [[nodiscard]] virtual std::string describe() const { return {}; }
    /// A rank of the job, as numbered in it, that this group has found to be gone.
    struct LostMember {
        std::uint64_t global_rank = 0;
        Status why;  // kPeerLost, kTimeout; kUnavailable where this process has no way to it
    };
    /// Looks at all members as far as the links show them, and asks `suspect` if it is one of them.
    [[nodiscard]] virtual std::optional<LostMember> look_for_lost(std::uint64_t /*suspect*/) {
        return std::nullopt;
    }
    /// Whom `suspect`, a member that has not come elsewhere, waits for in this group: kTimeout that
    /// names the last in that chain.
    [[nodiscard]] virtual std::optional<LostMember> look_for_holdup(std::uint64_t /*suspect*/,
                                                                    Deadline /*deadline*/) {
        return std::nullopt;
    }
    /// What a thread does now and then that has waited for `idle` and seen nothing move.
    virtual void look_around(Duration /*idle*/) {}
    /// The collective that a thread of the user waits for in this group now; no operation: none.
    [[nodiscard]] virtual Elsewhere blocked_in() const { return {}; }
    /// Whether this process is among the ranks `awaited`, and has not left the group.
    [[nodiscard]] virtual bool can_be_awaited(std::span<const Rank> /*awaited*/) const {
        return false;
    }
    /// Whether the collective of that number has been called here.
    [[nodiscard]] virtual bool has_called(std::uint64_t /*sequence*/) const { return true; }
    /// What another group has found out: ends this one.
    virtual void fail(const Status& /*why*/) {}
    /// Carries operations on; true when something moved.
    virtual bool advance() = 0;
    /// Whether operations are in flight that somebody should carry on.
    [[nodiscard]] virtual bool is_busy() const = 0;
};

class PCCL_API Runtime final : public transport::Acceptor {
   public:
    using Transports = std::vector<std::unique_ptr<transport::Transport>>;

    /// The transports that this machine and `allowed` permit. kUnavailable when none is left.
    static Result<std::shared_ptr<Runtime>> create(transport::TransportFlags allowed);
    /// The runtime that all groups of this process share while any of them lives. kUnavailable in a
    /// child of fork().
    static Result<std::shared_ptr<Runtime>> of_process();
    /// With transports of the caller's (a loopback fabric, in tests), which take `waiter` for their
    /// own.
    static Result<std::shared_ptr<Runtime>> with(std::shared_ptr<transport::Waiter> waiter,
                                                 Transports transports);
    ~Runtime() override;
    Runtime(const Runtime&) = delete;
    Runtime& operator=(const Runtime&) = delete;

    /// Groups keep it alive: a waiter of an operation may outlast the runtime.
    [[nodiscard]] const std::shared_ptr<transport::Waiter>& waiter() const { return waiter_; }
    /// In order of preference.
    [[nodiscard]] std::span<const std::unique_ptr<transport::Transport>> transports() const {
        return transports_;
    }
    [[nodiscard]] transport::Transport* find(transport::TransportKind kind) const;
    struct Way {
        transport::Transport* transport = nullptr;
        std::string address;  // of the peer there
        std::string reasons;  // not to take a better one
    };
    /// By the best transport of those allowed that reaches `peer`. kUnavailable, with the reasons,
    /// without one.
    [[nodiscard]] Result<Way> way_to(const bootstrap::Endpoint& peer,
                                     transport::TransportFlags allowed) const;
    /// Whether a process that has not joined yet is still there: kPeerLost that names it when not.
    [[nodiscard]] Status knock(const bootstrap::Endpoint& peer,
                               transport::TransportFlags allowed) const;

    /// A rank of a group: several may be in one process, on threads of their own.
    struct Seat {
        transport::GroupId group{};
        Rank rank = 0;

        auto operator<=>(const Seat&) const = default;
    };
    void enroll(const Seat& seat, const transport::Secret& secret,
                std::weak_ptr<Participant> participant);
    void dismiss(const Seat& seat);
    /// What to answer to ranks that ask after one that has left its group. The last ones are kept.
    void leave_word(const Seat& seat, const transport::Secret& secret, std::string answer);
    /// A participant has work that nobody may be waiting for: the progress thread takes it up.
    void notify();

    /// Looks whether a rank of the job that is among `global_ranks` is gone, as far as the groups
    /// of this process show it: LostMember::why, with its place among them. The one at `suspect`
    /// is asked how it fares.
    [[nodiscard]] Status look_for_lost(std::span<const std::uint64_t> global_ranks, Rank suspect);
    /// `late`, a kTimeout that names one of `global_ranks`; or, where that one is held up in
    /// another group of this process, whom it waits for there.
    [[nodiscard]] Status why_late(std::span<const std::uint64_t> global_ranks, const Status& late);

    /// What a thread of the user waits for in any group but `here`.
    [[nodiscard]] Elsewhere blocked_outside(const transport::GroupId& here);
    /// Whether a rank that waits there waits for this process.
    [[nodiscard]] bool is_awaited(const Elsewhere& there);
    /// Whether it waits in a collective that this process has not called.
    [[nodiscard]] bool is_lacking(const Elsewhere& there);
    /// For all ranks of this process that are in the group.
    void fail(const transport::GroupId& group, const Status& why);
    /// To be called by threads that wait for a group.
    void note_thread();
    [[nodiscard]] bool has_one_thread() const { return !has_several_threads_.load(); }

    void noticed(const transport::LinkRequest& request, const Status& reason) override;
    std::string describe(const transport::LinkRequest& request) override;
    bool serves(const transport::LinkRequest& request) override;
    std::optional<transport::Secret> secret_of(const transport::GroupId& group) override;
    void accepted(const transport::LinkRequest& request,
                  std::unique_ptr<transport::RecvLink> link) override;
    void accepted_region(const transport::LinkRequest& request,
                         std::unique_ptr<transport::Region> region) override;
    void fell_short(const transport::LinkRequest& request, transport::TransportKind kind,
                    const Status& why) override;
    void refused(std::string_view way, const Status& why) override;

   private:
    struct Member {
        transport::Secret secret;
        std::weak_ptr<Participant> participant;
    };

    struct LastWord {
        Seat seat;
        transport::Secret secret;
        std::string answer;
    };

    Runtime() = default;
    Status start();
    void accept_until_stopped();
    void progress_until_stopped();
    /// Advances every busy participant once; nullopt when none is busy.
    std::optional<bool> advance_busy();
    void let_busy_look_around(Duration idle);
    std::vector<std::shared_ptr<Participant>> participants();
    std::vector<std::shared_ptr<Participant>> participants_of(const transport::GroupId& group);
    std::shared_ptr<Participant> participant_at(const Seat& seat);
    /// Of the rank that a request is for.
    std::shared_ptr<Participant> participant_at(const transport::LinkRequest& request) {
        return participant_at(Seat{request.group, request.destination});
    }
    /// Under mutex_; null where there is none.
    [[nodiscard]] const LastWord* last_word_at(const Seat& seat) const;

    std::shared_ptr<transport::Waiter> waiter_;
    Transports transports_;
    UniqueFd arrivals_;  // epoll set: connections to accept, and `stop_`
    UniqueFd stop_;      // eventfd
    std::unique_ptr<runtime::FlightSignal> flight_signal_;
    const ForkMark made_in_;
    std::atomic<const void*> first_thread_{nullptr};  // that has waited
    std::atomic<bool> has_several_threads_{false};
    std::atomic<bool> stopping_{false};
    std::atomic<std::uint32_t> work_{0};  // grows with every notify()
    LimitedLog refusals_{"connections refused"};
    std::mutex mutex_;  // guards members_, last_words_ and the start of progress_
    std::map<Seat, Member> members_;
    std::deque<LastWord> last_words_;                  // oldest first
    std::vector<std::shared_ptr<Participant>> round_;  // of advance_busy, kept for its memory
    std::unique_ptr<BackgroundThread> acceptor_;       // last: they stop first
    std::unique_ptr<BackgroundThread> progress_;
};

}  // namespace pccl::comm
