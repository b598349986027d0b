// The moving part of a communicator: the order of its operations, and the lock under which they
// advance.
//
// Collectives run one at a time in the order of submission; messages beside them. Whoever waits
// advances the whole group (a synchronous call therefore runs on its caller's thread, start to
// end); the runtime's thread does while asynchronous operations are in flight. Threads take turns,
// one step each. Who is to blame when nothing moves is for its HangDiagnosis to find out.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/fork.h"
#include "csrc/base/tellers.h"
#include "csrc/bootstrap/layout.h"
#include "csrc/collective/prediction.h"
#include "csrc/comm/collective_operation.h"
#include "csrc/comm/collective_queue.h"
#include "csrc/comm/diagnosis/diagnosed_group.h"
#include "csrc/comm/diagnosis/hang_diagnosis.h"
#include "csrc/comm/diagnosis/other_groups.h"
#include "csrc/comm/mailbox.h"
#include "csrc/comm/options.h"
#include "csrc/comm/peers.h"
#include "csrc/comm/phase/phased_group.h"
#include "csrc/comm/selection/selector.h"
#include "csrc/runtime/event.h"
#include "csrc/runtime/operation.h"
#include "csrc/runtime/runtime.h"

namespace pccl::comm {

class Group final : public WitnessingParticipant,
                    public runtime::ProgressEngine,
                    public DiagnosedGroup,
                    public PhasedGroup,
                    public std::enable_shared_from_this<Group> {
   public:
    Group(runtime::Runtime& runtime, const bootstrap::GroupIdentity& identity,
          const CommunicatorOptions& options);

    /// To be called once, before any operation. On one host it waits for all ranks.
    Status register_remote_infos(const bootstrap::Roster& roster,
                                 std::shared_ptr<const bootstrap::Layout> layout,
                                 Deadline deadline);

    /// Communicator::check_call().
    [[nodiscard]] Status check_call(const Collective& collective);
    Status run(const Collective& collective, OptionalTimeout timeout);
    Result<runtime::Event> submit(const Collective& collective, OptionalTimeout timeout);
    Result<runtime::Event> post(const MessageOperation::Envelope& envelope,
                                const MessageOptions& options);

    Status help(runtime::Operation& operation, Until until, Deadline deadline) override;
    /// ok, or that this thread was interrupted: the operation goes on.
    [[nodiscard]] Status check_interrupt() const override {
        if (interrupted_) PCCL_TRY(interrupted_());
        return check_process();  // a signal handler may have forked
    }

    [[nodiscard]] Result<std::vector<Prediction>> explain(CollectiveKind kind, std::size_t bytes);
    /// Chooses from `catalogue` from the next collective on, which must be the same on all ranks.
    [[nodiscard]] Status choose_from(std::shared_ptr<const schedule::Catalogue> catalogue);
    [[nodiscard]] std::shared_ptr<const schedule::Catalogue> catalogue() const;
    /// Needs register_remote_infos().
    [[nodiscard]] const bootstrap::Layout& layout() const { return selector_->layout(); }
    /// What its predictions count on, alike on all ranks.
    [[nodiscard]] const costs::MachineCosts& costs() const { return preferences_.costs; }

    /// Communicator::record_timeline() and take_timeline().
    [[nodiscard]] Status record_timeline(std::size_t most);
    [[nodiscard]] Result<TimedSteps> take_timeline();

    void abort(const Status& reason);
    /// Ends the group as its user wants it, and waits for callbacks that other threads run:
    /// kMismatch where ranks have called different collectives that nobody has compared, of which
    /// the others are then told, too.
    Status leave();
    [[nodiscard]] Status health() const override;
    /// kUnavailable in a child of fork(), which must not even wait for the lock.
    [[nodiscard]] Status check_process() const;

    [[nodiscard]] const Peers& peers() const { return peers_; }
    [[nodiscard]] const runtime::PeerDirectory& directory() const { return peers_.directory(); }
    [[nodiscard]] const PeerSurvey& survey() const { return diagnosis_.survey(); }
    [[nodiscard]] ShrinkState& shrinking() { return diagnosis_.report().shrinking(); }
    [[nodiscard]] Rank rank() const override { return directory().rank(); }
    [[nodiscard]] int size() const override { return directory().size(); }
    [[nodiscard]] const std::string& name() const override { return directory().group_name(); }
    [[nodiscard]] std::chrono::milliseconds timeout() const { return timeout_.load(); }
    void set_timeout(std::chrono::milliseconds timeout) { timeout_.store(timeout); }

    // As its runtime sees it:

    void accept_link(const transport::LinkRequest& request,
                     std::unique_ptr<transport::RecvLink> link) override;
    void accept_region(const transport::LinkRequest& request,
                       std::unique_ptr<transport::Region> region) override;
    void hear(Rank from, const Status& reason) override { diagnosis_.hear(from, reason); }
    void fall_short(const Status& why) override;
    [[nodiscard]] std::string describe() const override { return diagnosis_.report().answer(); }
    [[nodiscard]] const runtime::VisibleGroup* visible() const override {
        return &diagnosis_.report();
    }
    [[nodiscard]] bool is_busy() const override { return unattended_.load() > 0; }
    bool advance() override;
    void look_around(Duration idle) override { diagnosis_.look_around(idle); }
    [[nodiscard]] Witness& witness() override { return diagnosis_.witness(); }

    // As its diagnosis does:

    [[nodiscard]] std::uint64_t sequence() const override { return collectives_.sequence(); }
    [[nodiscard]] bool is_over() const override { return is_over_.load(); }
    [[nodiscard]] const std::atomic<bool>& aborted() const override { return aborted_; }
    [[nodiscard]] std::mutex& mutex() const override { return mutex_; }
    [[nodiscard]] const GroupEnd& ended() const override { return end_; }
    [[nodiscard]] std::optional<Stall> stall() const override;
    [[nodiscard]] AwaitedRanks awaited() const override;
    void end(const Status& why) override;

    // As a switch of phases does (group_phase.cc):

    [[nodiscard]] bool share_memory(Rank one, Rank other) const override;
    void hold() override;
    void release() override;
    [[nodiscard]] Result<bool> drain() override;
    [[nodiscard]] std::string under_way() const override;
    [[nodiscard]] Switching::Progress progress() const override;
    void enter(GroupPhase phase) override;
    [[nodiscard]] Result<Situation> ask(Rank rank, Deadline deadline) const override {
        return survey().ask(rank, deadline);
    }
    [[nodiscard]] SwitchState& switching() override { return diagnosis_.report().switching(); }

   private:
    using OperationPtr = std::shared_ptr<runtime::Operation>;

    [[nodiscard]] Status check(const Collective& collective) const;
    [[nodiscard]] Deadline deadline(TimePoint now, OptionalTimeout timeout) const;
    [[nodiscard]] runtime::Issue issue(const CollectiveOperation& operation,
                                       OptionalTimeout timeout) const;
    [[nodiscard]] runtime::Issue issue(const MessageOperation::Envelope& envelope,
                                       OptionalTimeout timeout) const;
    void leave_to_background(const OperationPtr& operation);
    void tell(std::vector<OperationPtr> ended);

    // Under mutex_:
    /// Lets go of it while the group is on hold.
    Status await_release(std::unique_lock<std::mutex>& lock, OptionalTimeout timeout);
    [[nodiscard]] Status check_link(const MessageOperation::Envelope& envelope) const;
    Result<std::shared_ptr<CollectiveOperation>> prepare(const Collective& collective);
    bool try_at_once(CollectiveOperation& operation);
    Status advance_all(bool& moved);
    /// What has ended and has callbacks, for tell().
    [[nodiscard]] std::vector<OperationPtr> take_ended();
    /// break_with() what `why` turns out to be, unless the group goes on.
    [[nodiscard]] std::optional<LastNotice> reconsider(const Status& why);
    /// Ends the group and all its operations; the notice is for HangDiagnosis::tell().
    [[nodiscard]] LastNotice break_with(const Status& cause);

    const ForkMark made_in_;
    runtime::Runtime& runtime_;
    const std::shared_ptr<transport::Waiter> waiter_;  // outlives the links
    const InterruptCheck interrupted_;
    const std::uint32_t flight_group_;
    std::atomic<std::chrono::milliseconds> timeout_;
    std::atomic<int> unattended_{0};    // operations that nobody may be waiting for
    std::atomic<bool> is_over_{false};  // as end_, without the lock
    std::atomic<bool> aborted_{false};  // ends what waits with the lock held

    mutable std::mutex mutex_;
    Peers peers_;  // outlives the mailbox
    HangDiagnosis diagnosis_;
    Preferences preferences_;           // with tuning and costs from register_remote_infos() on
    std::optional<Selector> selector_;  // from then on
    GroupEnd end_;
    bool is_on_hold_ = false;
    GroupPhase phase_;
    Mailbox mailbox_;
    CollectiveQueue collectives_;
    std::vector<OperationPtr> ended_;  // to be told without the lock
    Tellers tellers_;
};

}  // namespace pccl::comm
