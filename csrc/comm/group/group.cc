// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/group/group.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/log/log.h"
#include "csrc/base/text/text.h"
#include "csrc/base/threads/now_and_then.h"
#include "csrc/bootstrap/locality.h"
#include "csrc/comm/diagnosis/diagnosed_group.h"
#include "csrc/sys/host.h"

namespace pccl::comm {
namespace {

/// Warns once, on rank 0 of the first group: further groups of these processes have the same
/// problem.
void warn_of_memory_apart(const bootstrap::Roster& roster, Rank self, const std::string& group) {
    static std::atomic<bool> is_logged{false};
    const std::string why = bootstrap::why_memory_is_apart(roster);
    if (why.empty()) return;
    const bool is_loud = !is_logged.exchange(true) && self == 0;
    log(is_loud ? LogLevel::kWarning : LogLevel::kInfo, "group ", group, ": ", why,
        "; TCP is used between them");
}

}  // namespace

Group::Group(runtime::Runtime& runtime, const bootstrap::GroupIdentity& identity,
             const CommunicatorImplOptions& options)
    : runtime_(runtime),
      waiter_(runtime.waiter()),
      interrupted_(options.interrupted),
      flight_group_(runtime::flight_recorder().add_group({.name = options.name,
                                                          .rank = options.rank,
                                                          .size = options.size,
                                                          .global_ranks = options.global_ranks})),
      timeout_(options.timeout),
      peers_(runtime, identity,
             {.rank = options.rank,
              .size = options.size,
              .group_name = options.name,
              .allowed = options.transports,
              .global_ranks = options.global_ranks}),
      diagnosis_(
          {.group = *this, .peers = peers_, .runtime = runtime, .flight_group = flight_group_}),
      mailbox_(options.rank, options.size, aborted_, usage_),
      collectives_(peers_.links(), flight_group_, usage_),
      phases_({.group = *this,
               .peers = peers_,
               .diagnosis = diagnosis_,
               .selector = selector_,
               .mailbox = mailbox_,
               .collectives = collectives_,
               .waiter = *waiter_}) {}

Status Group::connect(const bootstrap::Roster& roster,
                      std::shared_ptr<const bootstrap::Layout> layout,
                      const SelectionPreferences& preferences, Deadline deadline,
                      ShmSetup::MemoryVote vote) {
    const std::lock_guard lock(mutex_);
    waiter_->share_cores(
        {.processes = static_cast<std::uint32_t>(bootstrap::ranks_beside(roster, rank())),
         .cores = static_cast<std::uint32_t>(sys::allowed_cores().count())});
    waiter_->wakes_take(std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(preferences.costs.wake.seconds)));
    warn_of_memory_apart(roster, rank(), name());
    PCCL_TRY(diagnosis_.timeout_cause(peers_.connect(roster, std::move(vote), deadline)));
    const auto limit = [&](std::string_view setting, const std::optional<int>& wanted) {
        return helper_limit(setting, wanted, roster, rank(), waiter_->crowd());
    };
    if (ShmSegment* const segment = peers_.segment()) {
        helpers_.copies = limit("PCCL_COPY_THREADS", process_config().copy_threads);
        collectives_.use(*segment, helpers_.copies->most);
    }
    helpers_.transfers = limit("PCCL_TCP_THREADS", process_config().tcp_threads);
    collectives_.use_helpers(helpers_.transfers.most);
    const auto forbidden = peers_.directory().forbidden();
    const Selector::GroupPlace place{rank(), peers_.segment(), std::move(layout)};
    if (forbidden.is_empty())
        selector_.emplace(roster, place, preferences);
    else
        selector_.emplace(bootstrap::without(forbidden, roster), place, preferences);
    return Status::ok();
}

Status Group::check(const Collective& collective) const {
    const Status shape = check_shape(collective, rank(), size());
    if (!shape.is_ok()) return shape.with_context(concat("group ", name()));
    return reduces(collective.kind)
               ? arithmetic::combine_for(collective.type, collective.op).status()
               : Status::ok();
}

Deadline Group::deadline(TimePoint now, OptionalTimeout timeout) const {
    return Deadline::from(now, timeout_of(timeout)).unless(aborted_);
}

Status Group::check_call(const Collective& collective) {
    PCCL_TRY(check_process());
    PCCL_TRY(check(collective));
    const std::lock_guard lock(mutex_);
    if (is_over()) return end_.shown;
    return selector_->choose(collective).status();
}

Status Group::run(const Collective& collective, OptionalTimeout timeout) {
    PCCL_TRY(check_process());
    PCCL_TRY(check(collective));
    std::unique_lock lock(mutex_);
    PCCL_TRY(phases_.await_release(lock, timeout_of(timeout)));
    PCCL_ASSIGN_OR_RETURN(auto operation, prepare(collective));
    const TimePoint now = system_clock().now();
    operation->begin(nullptr, now, deadline(now, timeout));
    if (!collectives_.is_empty() || !try_at_once(*operation)) {
        collectives_.push(operation);
        lock.unlock();
        if (const Status status = progress(*operation, Deadline::never()); !status.is_ok()) {
            // The caller's memory must not be used after the return.
            if (!operation->is_done()) abort(status);
            return status;
        }
        lock.lock();
        collectives_.give_back(std::move(operation));
    } else {
        collectives_.end_unqueued(std::move(operation));
    }
    return Status::ok();
}

/// Tries to finish at once: most collectives of a segment are done at the first step, if the queue
/// is empty.
bool Group::try_at_once(CollectiveOperation& operation) {
    if (peers_.segment() == nullptr) return false;
    bool moved = false;
    const Result<bool> done = operation.progress(moved);
    // An error ends the operation and the group: continuing after half a step could give wrong
    // results.
    if (!done.is_ok()) diagnosis_.conclude(done.status());
    return done.is_ok() && *done;
}

Result<Event> Group::submit(const Collective& collective, OptionalTimeout timeout) {
    PCCL_TRY(check_process());
    PCCL_TRY(check(collective));
    std::shared_ptr<CollectiveOperation> operation;
    {
        std::unique_lock lock(mutex_);
        PCCL_TRY(phases_.await_release(lock, timeout_of(timeout)));
        PCCL_ASSIGN_OR_RETURN(operation, prepare(collective));
        const TimePoint now = system_clock().now();
        operation->begin(shared_from_this(), now, deadline(now, timeout));
        collectives_.push(operation);
    }
    leave_to_background(operation);
    return Event(operation);
}

Result<Event> Group::post(const MessageOperation::Envelope& envelope,
                          const MessageOptions& options) {
    PCCL_TRY(check_process());
    const bool any =
        envelope.direction == MessageOperation::Direction::kReceive && envelope.peer == kAnySource;
    if (!any && (envelope.peer < 0 || envelope.peer >= size()))
        return Status::invalid_argument(
            concat("rank ", envelope.peer, " is not in group ", name(), " of ", size()));
    auto message = std::make_shared<MessageOperation>(envelope, flight_group_);
    {
        std::unique_lock lock(mutex_);
        PCCL_TRY(phases_.await_release(lock, timeout_of(options.timeout)));
        if (is_over()) return end_.shown;
        PCCL_TRY(phases_.check_link(envelope));
        const TimePoint now = system_clock().now();
        message->begin(shared_from_this(), now, deadline(now, options.timeout));
        if (options.is_awaited) PCCL_TRY(mailbox_.check_other_half(*message));
        mailbox_.post(message);
    }
    leave_to_background(message);
    return Event(message);
}

void Group::leave_to_background(const std::shared_ptr<runtime::Operation>& operation) {
    unattended_.fetch_add(1);
    // A first step here saves short operations the hand-off.
    operation->on_done([this](const Status&) { unattended_.fetch_sub(1); });
    progress();
    if (!operation->is_done()) runtime_.notify();
}

Status Group::check_process() const {
    if (!made_in_.is_child()) return Status::ok();
    return Status::unavailable(concat("group ", name(),
                                      " belongs to the parent of this forked process; make a new "
                                      "group here, in a process started by spawn"));
}

Result<std::shared_ptr<CollectiveOperation>> Group::prepare(const Collective& collective) {
    if (is_over()) return end_.shown;
    if (!phases_.unusable().is_ok() && !selector_->is_part(collective)) return phases_.unusable();
    PCCL_ASSIGN_OR_RETURN(const Decision* decision, selector_->choose(collective));
    return collectives_.prepare(collective, *decision);
}

Status Group::progress(runtime::Operation& operation, Deadline deadline) {
    return progress_until([&] { return operation.is_done(); }, operation, deadline);
}

Status Group::flush(runtime::Operation& operation) {
    const auto is_flushed = [&] {
        if (operation.is_done()) return true;
        const std::lock_guard lock(mutex_);
        return operation.is_flushed();
    };
    return progress_until(is_flushed, operation, Deadline::never());
}

template <typename Reached>
Status Group::progress_until(Reached reached, const runtime::Operation& operation,
                             Deadline deadline) {
    PCCL_TRY(check_process());
    transport::Backoff backoff(*waiter_);
    TimePoint idle_since{};
    NowAndThen look(transport::Backoff::kSlice);
    const auto is_past_deadline = [&] {
        return Status::timeout(concat(operation.describe(), " in group ", name(),
                                      ": the wait timed out; the operation goes on"));
    };
    runtime_.note_thread();
    const auto waits = diagnosis_.report().note_waiter();
    while (!reached()) {
        if (progress()) {
            backoff.reset();
            idle_since = {};
            if (!look.is_due()) continue;
            PCCL_TRY(check_interrupt());
            if (deadline.passed()) return is_past_deadline();
            continue;
        }
        if (backoff.slept()) {
            PCCL_TRY(check_interrupt());
            const TimePoint now = system_clock().now();
            if (idle_since == TimePoint{}) idle_since = now;
            look_around(now - idle_since);
        }
        if (deadline.passed()) return is_past_deadline();
        // Shorter waits would cost more to measure than they take.
        if (!backoff.is_spinning()) begin_wait();
        backoff.pause();
    }
    return operation.is_done() ? operation.status() : Status::ok();
}

bool Group::progress() {
    bool moved = false;
    bool is_broken = false;
    std::unique_lock lock(mutex_);
    const std::size_t before = collectives_.size();
    if (!is_over())
        if (const Status status = progress_all(moved); !status.is_ok())
            is_broken = reconsider(status);
    if (moved) end_wait();
    const bool late = !moved && collectives_.is_past_deadline() && !aborted_.load();
    const bool any_ended = collectives_.size() != before || !ended_.is_empty();
    ended_.report(std::move(lock));
    if (any_ended) waiter_->wake();
    if (is_broken) diagnosis_.report_end();
    if (late) diagnosis_.on_deadline();
    return moved;
}

void Group::begin_wait() {
    const std::lock_guard lock(mutex_);
    const bool is_collective = !collectives_.is_empty();
    if (idle_since_ != TimePoint{} || (!is_collective && mailbox_.is_idle())) return;
    idle_since_ = system_clock().now();
    idle_for_ = is_collective ? collectives_.awaited() : mailbox_.awaited();
    idle_in_ = is_collective ? Waiter::kCollective : Waiter::kMessage;
}

void Group::end_wait() {
    if (idle_since_ == TimePoint{}) return;
    usage_.add_wait(idle_for_, system_clock().now() - idle_since_, idle_in_);
    idle_since_ = {};
}

Status Group::progress_all(bool& moved) {
    if (diagnosis_.has_received_reason()) return diagnosis_.received_reason();
    peers_.note_arrivals();
    PCCL_TRY(collectives_.progress(moved, ended_));
    return mailbox_.progress(peers_.links(), moved, ended_);
}

std::optional<Stall> Group::stall() const {
    if (collectives_.is_empty()) return std::nullopt;
    const CollectiveOperation& front = collectives_.front();
    return Stall{.self = rank(),
                 .ranks = size(),
                 .group = name(),
                 .sequence = front.sequence(),
                 .header = front.header(),
                 .awaited = front.awaited(),
                 .deadline = collectives_.deadline()};
}

bool Group::uses_links() const {
    return !mailbox_.is_idle() || (!collectives_.is_empty() && !collectives_.front().is_on_shm());
}

AwaitedRanks Group::awaited() const {
    AwaitedRanks ranks = mailbox_.awaited();
    const AwaitedRanks more = collectives_.awaited();
    ranks.insert(ranks.end(), more.begin(), more.end());
    return ranks;
}

void Group::break_with(const Status& cause) {
    // abort() ends a connection attempt, whose error then looks like a timeout.
    end_.cause = aborted_.load() && cause.code() == StatusCode::kTimeout
                     ? Status::aborted("abort was called on this group")
                     : cause;
    // The text of a mismatch contains the operations of both sides.
    const bool has_operations =
        collectives_.is_empty() || end_.cause.code() == StatusCode::kMismatch;
    end_.shown = explained(end_.cause, directory(),
                           has_operations ? std::string() : collectives_.front().describe());
    is_over_.store(true);
    const bool has_failed = end_.cause.code() != StatusCode::kAborted;
    diagnosis_.note_unnotified(has_failed ? peers_.out_of_reach() : std::vector<Rank>());
    // Close before operations end: then their callers may reuse memory that a peer is still
    // reading.
    peers_.close(end_.cause);
    collectives_.fail_all(end_.shown, ended_);
    mailbox_.fail_all(end_.shown, ended_);
}

bool Group::reconsider(const Status& why) {
    const Status cause = diagnosis_.reconsidered(why, collectives_.latest());
    if (!cause.is_ok()) break_with(cause);
    return !cause.is_ok();
}

void Group::end(const Status& why) {
    std::unique_lock lock(mutex_);
    if (is_over()) return;
    const bool is_broken = reconsider(why);
    ended_.report(std::move(lock));
    waiter_->wake();
    if (is_broken) diagnosis_.report_end();
}

void Group::abort(const Status& reason) {
    if (made_in_.is_child()) return;
    aborted_.store(true);
    end(reason);
}

Status Group::leave() {
    if (made_in_.is_child()) return Status::ok();
    Status found;
    Status reason = Status::aborted(concat("group ", name(), " was shut down"));
    {
        // The owner of the lock may be in the middle of an operation.
        const std::unique_lock lock(mutex_, std::try_to_lock);
        const bool is_idle = lock.owns_lock() && !is_over() && collectives_.is_empty();
        // The caller of the failed switch has received this error already.
        const Status disagreement = is_idle ? phases_.disagreement() : Status::ok();
        if (is_idle && disagreement.is_ok() && collectives_.latest().magic != 0)
            found = diagnosis_.compare_latest(collectives_.latest());
        if (!found.is_ok()) reason = found;
        if (!disagreement.is_ok() && phases_.is_disagreement_news()) reason = disagreement;
    }
    abort(reason);
    if (!ended_.await_others(Deadline::after(timeout_.load())))
        log(LogLevel::kWarning, "group ", name(),
            " was shut down while one of its callbacks still runs");
    return found.is_ok() ? found : health();
}

Status Group::health() const {
    PCCL_TRY(check_process());
    const std::lock_guard lock(mutex_);
    return end_.shown;
}

void Group::accept_link(const transport::LinkRequest& request,
                        std::unique_ptr<transport::RecvLink> link) {
    peers_.accepted(request, std::move(link));
}

void Group::accept_region(const transport::LinkRequest& request,
                          std::unique_ptr<transport::Region> region) {
    peers_.accepted(request, std::move(region));
}

void Group::fall_short(const Status& why) {
    diagnosis_.conclude(why);
    peers_.fall_short(why);
}

}  // namespace pccl::comm
