// SPDX-License-Identifier: Apache-2.0

// Engine of a communicator: it owns the order of operations and the lock under which they make
// progress.
//
// Collectives run one at a time in the order of submission; messages run concurrently with them. A
// waiting thread makes progress for the whole group, so that a synchronous call runs on its
// caller's thread from start to end; the runtime's thread makes progress while asynchronous
// operations are in flight. Threads alternate, one step each. HangDiagnosis finds the rank to blame
// when nothing moves; GroupPhases applies switches of the network's phases.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <pccl/collective.h>
#include "csrc/base/fork.h"
#include "csrc/base/threads/locked.h"
#include "csrc/bootstrap/layout.h"
#include "csrc/comm/diagnosis/diagnosed_group.h"
#include "csrc/comm/diagnosis/hang_diagnosis.h"
#include "csrc/comm/diagnosis/other_groups.h"
#include "csrc/comm/group/collective_queue.h"
#include "csrc/comm/group/group_phases.h"
#include "csrc/comm/group/helper_limits.h"
#include "csrc/comm/group/mailbox.h"
#include "csrc/comm/group/options.h"
#include "csrc/comm/group/peers.h"
#include "csrc/comm/selection/selector.h"
#include "csrc/runtime/ended_operations.h"
#include "csrc/runtime/flight/group_usage.h"
#include "csrc/runtime/operation.h"
#include "csrc/runtime/runtime.h"

namespace pccl::comm {

class Group final : public ProbedParticipant,
                    public runtime::ProgressEngine,
                    public DiagnosedGroup,
                    public std::enable_shared_from_this<Group> {
   public:
    Group(runtime::Runtime& runtime, const bootstrap::GroupIdentity& identity,
          const CommunicatorImplOptions& options);

    /// Connects the group; call it once, before any operation. On one host it waits for all ranks.
    Status connect(const bootstrap::Roster& roster, std::shared_ptr<const bootstrap::Layout> layout,
                   const SelectionPreferences& preferences, Deadline deadline,
                   ShmSetup::MemoryVote vote = {});

    /// Implements Communicator::check_call().
    [[nodiscard]] Status check_call(const Collective& collective);
    Status run(const Collective& collective, OptionalTimeout timeout);
    Result<Event> submit(const Collective& collective, OptionalTimeout timeout);
    Result<Event> post(const MessageOperation::Envelope& envelope, const MessageOptions& options);

    Status progress(runtime::Operation& operation, Deadline deadline) override;
    Status flush(runtime::Operation& operation) override;
    /// Returns ok, or the error of an interrupt on this thread; the operation continues.
    [[nodiscard]] Status check_interrupt() const override {
        if (interrupted_) PCCL_TRY(interrupted_());
        return check_process();  // a signal handler may have forked
    }

    // The next members require connect(). The first two must not be called in a child
    // of fork(), which must not wait for the lock:

    [[nodiscard]] Locked<Selector> selector() { return {mutex_, *selector_}; }
    [[nodiscard]] Locked<Timeline> timeline() { return {mutex_, collectives_.timeline()}; }
    [[nodiscard]] const bootstrap::Layout& layout() const { return selector_->layout(); }
    [[nodiscard]] const costs::MachineCosts& costs() const { return selector_->costs(); }
    [[nodiscard]] const HelperLimits& helpers() const { return helpers_; }

    void abort(const Status& reason);
    /// Ends the group on behalf of its user and waits for callbacks that other threads run. Returns
    /// kMismatch when ranks are found to have called different collectives that were not compared
    /// before, and notifies the other ranks.
    Status leave();
    [[nodiscard]] Status health() const override;
    /// Returns kUnavailable in a child of fork(), which must not wait for the lock.
    [[nodiscard]] Status check_process() const;

    [[nodiscard]] const Peers& peers() const { return peers_; }
    [[nodiscard]] const runtime::PeerDirectory& directory() const { return peers_.directory(); }
    [[nodiscard]] HangDiagnosis& diagnosis() { return diagnosis_; }
    [[nodiscard]] PhasedGroup& phases() { return phases_; }
    [[nodiscard]] Rank rank() const { return directory().rank(); }
    [[nodiscard]] int size() const { return directory().size(); }
    [[nodiscard]] const std::string& name() const { return directory().group_name(); }
    [[nodiscard]] std::chrono::milliseconds timeout() const { return timeout_.load(); }
    void set_timeout(std::chrono::milliseconds timeout) { timeout_.store(timeout); }

    // The runtime uses these:

    void accept_link(const transport::LinkRequest& request,
                     std::unique_ptr<transport::RecvLink> link) override;
    void accept_region(const transport::LinkRequest& request,
                       std::unique_ptr<transport::Region> region) override;
    void receive_reason(Rank from, const Status& reason) override {
        diagnosis_.receive_reason(from, reason);
    }
    void fall_short(const Status& why) override;
    [[nodiscard]] std::string describe(Rank asker) override {
        return diagnosis_.report().answer(asker);
    }
    [[nodiscard]] const runtime::VisibleGroup* visible() const override {
        return &diagnosis_.report();
    }
    [[nodiscard]] bool is_busy() const override { return unattended_.load() > 0; }
    bool progress() override;
    void look_around(Duration idle) override { diagnosis_.look_around(idle); }
    [[nodiscard]] GroupProbe& group_probe() override { return diagnosis_.group_probe(); }

    // The diagnosis uses these:

    [[nodiscard]] std::uint64_t sequence() const override { return collectives_.sequence(); }
    [[nodiscard]] bool is_over() const override { return is_over_.load(); }
    [[nodiscard]] const std::atomic<bool>& aborted() const override { return aborted_; }
    [[nodiscard]] std::mutex& mutex() const override { return mutex_; }
    [[nodiscard]] const runtime::GroupUsage& usage() const override { return usage_; }
    [[nodiscard]] const GroupEnd& ended() const override { return end_; }
    [[nodiscard]] std::optional<Stall> stall() const override;
    [[nodiscard]] bool uses_links() const override;
    [[nodiscard]] AwaitedRanks awaited() const override;
    void end(const Status& why) override;

   private:
    using Waiter = runtime::GroupUsage::Waiter;

    [[nodiscard]] Status check(const Collective& collective) const;
    [[nodiscard]] std::chrono::milliseconds timeout_of(OptionalTimeout timeout) const {
        return timeout.value_or(timeout_.load(std::memory_order_relaxed));
    }
    [[nodiscard]] Deadline deadline(TimePoint now, OptionalTimeout timeout) const;
    /// Begins to count the time in which nothing moves, for the ranks that are awaited now.
    void begin_wait();
    void leave_to_background(const std::shared_ptr<runtime::Operation>& operation);
    template <typename Reached>
    Status progress_until(Reached reached, const runtime::Operation& operation, Deadline deadline);

    // These require mutex_:
    Result<std::shared_ptr<CollectiveOperation>> prepare(const Collective& collective);
    bool try_at_once(CollectiveOperation& operation);
    Status progress_all(bool& moved);
    /// Ends the wait that begin_wait() began, if there is one, because something moved.
    void end_wait();
    /// Examines `why` and ends the group if it is a failure. Returns true if so: the caller must
    /// then call HangDiagnosis::report_end(). Returns false if the group continues.
    [[nodiscard]] bool reconsider(const Status& why);
    /// Ends the group and all its operations.
    void break_with(const Status& cause);

    const ForkMark made_in_;
    runtime::Runtime& runtime_;
    const std::shared_ptr<transport::Waiter> waiter_;  // outlives the links
    const InterruptCheck interrupted_;
    const std::uint32_t flight_group_;
    std::atomic<std::chrono::milliseconds> timeout_;
    std::atomic<int> unattended_{0};    // operations that no thread may be waiting for
    std::atomic<bool> is_over_{false};  // mirrors end_, readable without the lock
    std::atomic<bool> aborted_{false};  // interrupts waits that hold the lock

    mutable std::mutex mutex_;
    runtime::GroupUsage usage_{[this] { return peers_.paths(); }};
    TimePoint idle_since_{};  // TimePoint{}: something moves
    AwaitedRanks idle_for_;
    Waiter idle_in_ = Waiter::kCollective;
    Peers peers_;  // outlives the mailbox
    HangDiagnosis diagnosis_;
    std::optional<Selector> selector_;  // set by connect()
    HelperLimits helpers_;              // set by connect()
    GroupEnd end_;
    Mailbox mailbox_;
    CollectiveQueue collectives_;
    GroupPhases phases_;
    runtime::EndedOperations ended_;
};

}  // namespace pccl::comm
