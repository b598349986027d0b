// The moving part of a communicator: the order of its operations, and the lock under which they
// advance.
//
// Collectives run one at a time in the order of submission; messages beside them. Whoever waits
// advances the whole group (a synchronous call therefore runs on its caller's thread, start to
// end); the runtime's thread does while asynchronous operations are in flight. Threads take turns,
// one step each.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "csrc/base/tellers.h"
#include "csrc/base/wait_notice.h"
#include "csrc/bootstrap/layout.h"
#include "csrc/collective/prediction.h"
#include "csrc/comm/collective_operation.h"
#include "csrc/comm/diagnosis/inquest.h"
#include "csrc/comm/diagnosis/other_groups.h"
#include "csrc/comm/diagnosis/peer_health.h"
#include "csrc/comm/mailbox.h"
#include "csrc/comm/options.h"
#include "csrc/comm/peers.h"
#include "csrc/comm/selection/selector.h"
#include "csrc/runtime/event.h"
#include "csrc/transport/sticky_status.h"

namespace pccl::comm {

class Group final : public WitnessingParticipant,
                    public Witness,
                    public runtime::ProgressEngine,
                    public std::enable_shared_from_this<Group> {
   public:
    Group(runtime::Runtime& runtime, const bootstrap::GroupIdentity& identity,
          const CommunicatorOptions& options);

    /// To be called once, before any operation. On one host it waits for all ranks.
    Status register_remote_infos(const bootstrap::Roster& roster,
                                 std::shared_ptr<const bootstrap::Layout> layout,
                                 Deadline deadline);

    Status run(const Collective& collective, OptionalTimeout timeout);
    Result<runtime::Event> submit(const Collective& collective, OptionalTimeout timeout);
    Result<runtime::Event> post(const MessageOperation::Envelope& envelope,
                                const MessageOptions& options);

    Status help(runtime::Operation& operation, Until until, Deadline deadline) override;
    /// ok, or that this thread was interrupted: the operation goes on.
    [[nodiscard]] Status check_interrupt() const {
        if (interrupted_) PCCL_TRY(interrupted_());
        return check_process();  // a signal handler may have forked
    }

    [[nodiscard]] Result<std::vector<Prediction>> explain(CollectiveKind kind, std::size_t bytes);
    /// Needs register_remote_infos().
    [[nodiscard]] const bootstrap::Layout& layout() const { return selector_->layout(); }

    void abort(const Status& reason);
    /// Ends the group as its user wants it, and waits for callbacks that other threads run:
    /// kMismatch where ranks have called different collectives that nobody has compared, of which
    /// the others are then told, too.
    Status leave();
    [[nodiscard]] Status health() const;
    /// kUnavailable in a child of fork(), which must not even wait for the lock.
    [[nodiscard]] Status check_process() const;
    /// How `rank` fares, from itself; kPeerLost where it is gone, kTimeout where it is silent.
    [[nodiscard]] Result<Situation> ask(Rank rank, Deadline deadline) const;
    [[nodiscard]] Result<Situation> ask(const bootstrap::Endpoint& peer, Deadline deadline) const {
        return peers_.ask(peer, deadline);
    }
    /// The same, and when `rank` last gave a sign of life.
    [[nodiscard]] PeerHealth health_of(Rank rank, Deadline deadline) const;
    /// How this rank fares.
    [[nodiscard]] Situation situation() const;
    /// With what its GPU waits in.
    [[nodiscard]] Situation whole_situation() const;
    /// Asks ranks that are still joining how they fare: kPeerLost for one that is gone.
    [[nodiscard]] Status look_at(std::span<const bootstrap::Endpoint> joined) const;

    void accept_link(const transport::LinkRequest& request,
                     std::unique_ptr<transport::RecvLink> link) override;
    void accept_region(const transport::LinkRequest& request,
                       std::unique_ptr<transport::Region> region) override;
    bool advance() override;
    [[nodiscard]] std::string describe() const override;
    [[nodiscard]] std::optional<LostMember> look_for_lost(std::uint64_t suspect) override;
    [[nodiscard]] std::optional<LostMember> look_for_holdup(std::uint64_t suspect,
                                                            Deadline deadline) override;
    void look_around(Duration idle) override;
    [[nodiscard]] Elsewhere blocked_in() const override;
    [[nodiscard]] bool can_be_awaited(std::span<const Rank> awaited) const override;
    [[nodiscard]] bool has_called(std::uint64_t sequence) const override {
        return sequence_.load() >= sequence;
    }
    [[nodiscard]] const transport::GroupId& group() const override { return id(); }
    [[nodiscard]] Witness& witness() override { return *this; }
    void fail(const Status& why) override { break_from_outside(why); }
    void hear(Rank from, const Status& reason) override;
    void fall_short(const Status& why) override;
    [[nodiscard]] bool is_busy() const override { return unattended_.load() > 0; }

    [[nodiscard]] Rank rank() const { return rank_; }
    [[nodiscard]] int size() const { return size_; }
    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] const transport::GroupId& id() const { return identity().group; }
    [[nodiscard]] const bootstrap::GroupIdentity& identity() const {
        return peers_.directory().identity();
    }
    [[nodiscard]] const bootstrap::Endpoint& endpoint(Rank peer) const {
        return peers_.directory().endpoint(peer);
    }
    /// `cause` as users see it: with the group, ", <operation>" unless empty, the process of the
    /// rank that it blames, and what to do next.
    [[nodiscard]] Status explained(const Status& cause, std::string_view operation = {}) const;
    [[nodiscard]] std::chrono::milliseconds timeout() const { return timeout_.load(); }
    void set_timeout(std::chrono::milliseconds timeout) { timeout_.store(timeout); }
    [[nodiscard]] std::uint64_t sequence() const { return sequence_.load(); }
    [[nodiscard]] ShrinkState& shrinking() { return shrinking_; }

   private:
    using OperationPtr = std::shared_ptr<runtime::Operation>;

    [[nodiscard]] Status check(const Collective& collective) const;
    [[nodiscard]] Deadline deadline(TimePoint now, OptionalTimeout timeout) const;
    [[nodiscard]] runtime::Issue issue(const CollectiveOperation& operation,
                                       OptionalTimeout timeout) const;
    [[nodiscard]] runtime::Issue issue(const MessageOperation::Envelope& envelope,
                                       OptionalTimeout timeout) const;
    std::shared_ptr<CollectiveOperation> take_spare();
    void leave_to_background(const OperationPtr& operation);

    // Under mutex_:
    Result<std::shared_ptr<CollectiveOperation>> prepare(const Collective& collective);
    bool try_at_once(CollectiveOperation& operation);
    Status advance_collectives(bool& moved);
    /// What others gave in the latest collective, where this rank gave something itself.
    Status compare_latest();
    [[nodiscard]] bool is_late() const;
    [[nodiscard]] AwaitedRanks awaited() const;
    [[nodiscard]] Stall stall() const;  // of the collective at the front
    void end_collective(Status status);
    /// What has ended and has callbacks, for tell().
    [[nodiscard]] std::vector<OperationPtr> take_ended();
    void break_with(const Status& cause);
    /// A rank that has left says more when it is asked: the whole reason, and that another is lost.
    [[nodiscard]] Status reconsidered(const Status& cause);
    /// Why `witness`, which is gone, has left: over a link, or told. Where no link to here was
    /// there yet, either may still be on its way.
    [[nodiscard]] Status last_words_of(Rank witness);
    /// A rank may be late to join because it waits for another.
    [[nodiscard]] Status why_late(const Status& late) const;

    // Not under it:
    void tell(std::vector<OperationPtr> ended);
    /// The lock, or not: who holds it may be long in the middle of something.
    [[nodiscard]] std::unique_lock<std::mutex> lock_soon() const;
    [[nodiscard]] TimePoint last_sign_of(Rank rank) const;
    /// Whether a rank that is waited for is gone, or any has left because of a failure: what the
    /// kernel knows within milliseconds.
    void look_at_awaited();
    /// The same by asking these ranks, which shows what no link does.
    void ask_awaited();
    void say_whom_it_awaits(Duration idle) const;
    /// What `answer` shows: that the rank has left, or waits for something else.
    [[nodiscard]] Status judge(Rank rank, const Result<Situation>& answer);
    /// Whether it is so, and was so when last asked: the first question may have met a rank on its
    /// way from one to the other, or one that goes on after an error.
    bool stays_out_of_order(const Stall& stall, const Situation& answer);
    /// Ends the other of two groups that are used in different orders, too.
    void fail_crossed(const Stall& stall, const Elsewhere& there);
    void break_from_outside(const Status& cause);
    /// The same, unless the operation moves on: what a rank did before it left still counts.
    void give_up(const Status& why);
    /// Why a member is gone, as far as the links show it and `suspect` says it of itself.
    [[nodiscard]] Status look_at_members(std::uint64_t suspect);
    /// Why this group is over, or `rank` has left it, as far as that has been told here.
    [[nodiscard]] Status known_end(Rank rank);
    [[nodiscard]] bool is_made() const;
    /// Whom `rank` waits for in this group: kTimeout that names the last in that chain.
    [[nodiscard]] Status whom_awaits(Rank rank, Deadline deadline) const;
    /// Tells ranks that no link or board tells: for a moment, then they find out by themselves.
    void tell_the_others();
    /// Finds out who is to blame for the collective at the front, and ends it.
    void give_up_late();

    const ForkMark made_in_;
    const Rank rank_;
    const int size_;
    const std::string name_;
    const std::string algorithm_;  // that was asked for
    const std::shared_ptr<const schedule::Catalogue> catalogue_;
    runtime::Runtime& runtime_;
    const std::shared_ptr<transport::Waiter> waiter_;  // outlives the links
    std::atomic<std::chrono::milliseconds> timeout_;
    std::atomic<std::uint64_t> sequence_{0};
    std::atomic<int> waiting_{0};     // threads of the user, in help()
    std::atomic<int> unattended_{0};  // operations that nobody may be waiting for

    const std::vector<std::uint64_t> global_ranks_;  // of the members, in the whole job
    const InterruptCheck interrupted_;
    const std::uint32_t flight_group_;
    std::atomic<bool> is_over_{false};                      // as broken_, without the lock
    std::atomic<bool> aborted_{false};                      // ends what waits with the lock held
    std::atomic<bool> inquiring_{false};                    // some thread asks other ranks
    mutable std::vector<std::atomic<TimePoint>> answered_;  // by rank: the last time that it did
    std::set<std::string> seen_out_of_order_;  // collectives of other groups; of who asks
    std::atomic<TimePoint> looked_{};
    std::atomic<TimePoint> asked_{};
    WaitNotice notice_;

    transport::StickyStatus heard_;  // from the acceptor, or a call's first step: why it is over
    std::atomic<Rank> heard_from_{kNoRank};
    ShrinkState shrinking_;

    mutable std::mutex mutex_;
    std::vector<Rank> to_tell_;     // once broken_
    abi::CollectiveHeader last_{};  // of the latest collective
    bool is_recorded_ = false;      // the flight record is written
    Status broken_;
    Status cause_;                      // of that, as others are told
    Peers peers_;                       // outlives the mailbox
    std::optional<Selector> selector_;  // from register_remote_infos() on
    Mailbox mailbox_;
    std::deque<std::shared_ptr<CollectiveOperation>> collectives_;
    std::shared_ptr<CollectiveOperation> spare_;
    std::vector<OperationPtr> ended_;  // to be told without the lock
    Tellers tellers_;
};

}  // namespace pccl::comm
