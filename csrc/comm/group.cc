#include "csrc/comm/group.h"

#include <algorithm>
#include <utility>

#include "csrc/base/log.h"
#include "csrc/base/scope_exit.h"
#include "csrc/base/text.h"
#include "csrc/collective/fingerprint.h"

namespace pccl::comm {
namespace {

std::string_view advice(const Status& cause) {
    switch (cause.code()) {
        case StatusCode::kPeerLost:
            return "; this group is over: go on without that rank (pccl.shrink), or restart the "
                   "job";
        case StatusCode::kTimeout:
            return "; this group is over: see what that rank does (pccl debug), or allow more time";
        case StatusCode::kMismatch:
            return "; this group is over: mend the program, and make a new group";
        default:
            return "";
    }
}

}  // namespace

Group::Group(runtime::Runtime& runtime, const bootstrap::GroupIdentity& identity,
             const CommunicatorOptions& options)
    : rank_(options.rank),
      size_(options.size),
      name_(options.name),
      algorithm_(options.algorithm),
      catalogue_(options.catalogue),
      runtime_(runtime),
      waiter_(runtime.waiter()),
      timeout_(options.timeout),
      global_ranks_(options.global_ranks),
      interrupted_(options.interrupted),
      flight_group_(runtime::flight_recorder().add_group({.name = options.name,
                                                          .rank = options.rank,
                                                          .size = options.size,
                                                          .global_ranks = options.global_ranks})),
      answered_(static_cast<std::size_t>(options.size)),
      peers_(runtime, identity,
             {.rank = options.rank,
              .size = options.size,
              .group_name = options.name,
              .allowed = options.transports,
              .global_ranks = options.global_ranks}),
      mailbox_(options.rank, options.size) {}

Status Group::register_remote_infos(const bootstrap::Roster& roster,
                                    std::shared_ptr<const bootstrap::Layout> layout,
                                    Deadline deadline) {
    const std::lock_guard lock(mutex_);
    PCCL_TRY(why_late(peers_.register_remote_infos(roster, deadline)));
    PCCL_ASSIGN_OR_RETURN(Tuning tuning, Tuning::parse(roster.tuning));
    selector_.emplace(
        roster, Selector::Place{rank_, peers_.board(), std::move(layout)},
        Preferences{.catalogue = catalogue_, .wanted = algorithm_, .tuning = std::move(tuning)});
    return Status::ok();
}

Status Group::check(const Collective& collective) const {
    PCCL_TRY(check_shape(collective, rank_, size_).with_context(concat("group ", name_)));
    return reduces(collective.kind)
               ? arithmetic::combine_for(collective.type, collective.op).status()
               : Status::ok();
}

Deadline Group::deadline(TimePoint now, OptionalTimeout timeout) const {
    return Deadline::from(now, timeout.value_or(timeout_.load(std::memory_order_relaxed)))
        .unless(aborted_);
}

runtime::Issue Group::issue(const CollectiveOperation& operation, OptionalTimeout timeout) const {
    const TimePoint now = system_clock().now();
    return {.at = now,
            .deadline = deadline(now, timeout),
            .ticket = runtime::flight_recorder().begin(flight_group_, operation.header(), now)};
}

runtime::Issue Group::issue(const MessageOperation::Envelope& envelope,
                            OptionalTimeout timeout) const {
    const TimePoint now = system_clock().now();
    const bool sends = envelope.direction == MessageOperation::Direction::kSend;
    return {.at = now,
            .deadline = deadline(now, timeout),
            .ticket = runtime::flight_recorder().begin(
                flight_group_, sends ? runtime::FlightKind::kSend : runtime::FlightKind::kReceive,
                {.peer = envelope.peer, .tag = envelope.tag, .bytes = envelope.bytes}, now)};
}

Status Group::run(const Collective& collective, OptionalTimeout timeout) {
    PCCL_TRY(check_process());
    PCCL_TRY(check(collective));
    std::unique_lock lock(mutex_);
    PCCL_ASSIGN_OR_RETURN(auto operation, prepare(collective));
    operation->begin(nullptr, issue(*operation, timeout));
    if (!collectives_.empty() || !try_at_once(*operation)) {
        collectives_.push_back(operation);
        lock.unlock();
        if (const Status status = help(*operation, Until::kDone, Deadline::never());
            !status.is_ok()) {
            // The caller's memory must not be used once it has returned.
            if (!operation->is_done()) abort(status);
            return status;
        }
        lock.lock();
    } else {
        operation->finish_unseen();
    }
    spare_ = std::move(operation);
    return Status::ok();
}

/// Most collectives of a board are done at the first try, with nothing in the queue.
bool Group::try_at_once(CollectiveOperation& operation) {
    if (peers_.board() == nullptr) return false;
    bool moved = false;
    const Result<bool> done = operation.advance(peers_.links(), moved);
    // An error ends it, and the group: to go on after half a step could give wrong results.
    if (!done.is_ok()) static_cast<void>(heard_.set(done.status()));
    return done.is_ok() && *done;
}

Result<runtime::Event> Group::submit(const Collective& collective, OptionalTimeout timeout) {
    PCCL_TRY(check_process());
    PCCL_TRY(check(collective));
    std::shared_ptr<CollectiveOperation> operation;
    {
        const std::lock_guard lock(mutex_);
        PCCL_ASSIGN_OR_RETURN(operation, prepare(collective));
        operation->begin(shared_from_this(), issue(*operation, timeout));
        collectives_.push_back(operation);
    }
    leave_to_background(operation);
    return runtime::Event(operation);
}

Result<runtime::Event> Group::post(const MessageOperation::Envelope& envelope,
                                   const MessageOptions& options) {
    PCCL_TRY(check_process());
    const bool any =
        envelope.direction == MessageOperation::Direction::kReceive && envelope.peer == kAnySource;
    if (!any && (envelope.peer < 0 || envelope.peer >= size_))
        return Status::invalid_argument(
            concat("rank ", envelope.peer, " is not in group ", name_, " of ", size_));
    auto message = std::make_shared<MessageOperation>(envelope);
    message->begin(shared_from_this(), issue(envelope, options.timeout));
    {
        const std::lock_guard lock(mutex_);
        if (!broken_.is_ok()) return broken_;
        if (options.is_awaited) PCCL_TRY(mailbox_.check_other_half(*message));
        mailbox_.post(message);
    }
    leave_to_background(message);
    return runtime::Event(message);
}

void Group::leave_to_background(const OperationPtr& operation) {
    unattended_.fetch_add(1);
    // A first step here spares short operations the hand-off.
    operation->on_done([this](const Status&) { unattended_.fetch_sub(1); });
    advance();
    if (!operation->is_done()) runtime_.notify();
}

std::shared_ptr<CollectiveOperation> Group::take_spare() {
    // A spare that somebody still holds an event of must keep its result.
    if (spare_ && spare_.use_count() == 1) return std::exchange(spare_, nullptr);
    return std::make_shared<CollectiveOperation>();
}

Status Group::check_process() const {
    if (!made_in_.is_child()) return Status::ok();
    return Status::unavailable(concat("group ", name_,
                                      " belongs to the parent of this forked process; make a new "
                                      "group here, in a process started by spawn"));
}

Result<std::shared_ptr<CollectiveOperation>> Group::prepare(const Collective& collective) {
    if (!broken_.is_ok()) return broken_;
    PCCL_ASSIGN_OR_RETURN(const Choice* choice, selector_->choose(collective));
    abi::CollectiveHeader header = choice->header;
    header.sequence = static_cast<std::uint32_t>(sequence_.fetch_add(1) + 1);
    header.history = history_after(last_);
    last_ = header;
    auto operation = take_spare();
    operation->prepare(collective, {choice->plan, choice->cut, choice->on_board, peers_.board()},
                       header, {.self = rank_, .ranks = size_});
    return operation;
}

Status Group::help(runtime::Operation& operation, Until until, Deadline deadline) {
    PCCL_TRY(check_process());
    transport::Backoff backoff(*waiter_);
    TimePoint idle_since{};
    runtime_.note_thread();
    waiting_.fetch_add(1, std::memory_order_relaxed);
    const ScopeExit done([this] { waiting_.fetch_sub(1, std::memory_order_relaxed); });
    const auto reached = [&] {
        if (operation.is_done()) return true;
        if (until == Until::kDone) return false;
        const std::lock_guard lock(mutex_);
        return operation.is_flushed();
    };
    while (!reached()) {
        if (advance()) {
            backoff.reset();
            idle_since = {};
            continue;
        }
        if (backoff.slept()) {
            PCCL_TRY(check_interrupt());
            const TimePoint now = system_clock().now();
            if (idle_since == TimePoint{}) idle_since = now;
            look_around(now - idle_since);
        }
        if (deadline.passed())
            return Status::timeout(concat(operation.describe(), " in group ", name_,
                                          ": the wait timed out; the operation goes on"));
        backoff.pause();
    }
    return operation.is_done() ? operation.status() : Status::ok();
}

bool Group::advance() {
    bool moved = false;
    bool late = false;
    bool ended_well = true;
    std::vector<OperationPtr> ended;
    bool any_ended = false;
    {
        const std::lock_guard lock(mutex_);
        const std::size_t before = collectives_.size();
        Status status = broken_;
        if (status.is_ok() && heard_.is_set()) status = heard_.get();
        if (status.is_ok()) status = advance_collectives(moved);
        if (status.is_ok()) status = mailbox_.advance(peers_.links(), moved, ended_);
        ended_well = status.is_ok() || !broken_.is_ok();
        if (!ended_well) break_with(reconsidered(status));
        late = !moved && is_late();
        any_ended = collectives_.size() != before || !ended_.empty();
        ended = take_ended();
    }
    tell(std::move(ended));
    if (any_ended) waiter_->wake();
    if (!ended_well) tell_the_others();
    if (late) give_up_late();
    return moved;
}

Status Group::advance_collectives(bool& moved) {
    while (!collectives_.empty()) {
        bool head_moved = false;
        PCCL_ASSIGN_OR_RETURN(const bool done,
                              collectives_.front()->advance(peers_.links(), head_moved));
        moved |= head_moved;
        if (!done) return Status::ok();
        moved = true;
        end_collective(Status::ok());
    }
    return Status::ok();
}

bool Group::is_late() const {
    return !collectives_.empty() && collectives_.front()->deadline().passed();
}

AwaitedRanks Group::awaited() const {
    AwaitedRanks ranks = mailbox_.awaited();
    if (collectives_.empty()) return ranks;
    const AwaitedRanks more = collectives_.front()->awaited();
    ranks.insert(ranks.end(), more.begin(), more.end());
    return ranks;
}

void Group::end_collective(Status status) {
    auto operation = std::move(collectives_.front());
    collectives_.pop_front();
    operation->finish(std::move(status));
    // Only the caller of run() holds the other reference of a synchronous operation, and it is
    // looking.
    if (operation->has_callbacks()) ended_.push_back(std::move(operation));
}

std::vector<Group::OperationPtr> Group::take_ended() {
    if (!ended_.empty()) tellers_.enter();
    return std::exchange(ended_, {});
}

void Group::tell(std::vector<OperationPtr> ended) {
    if (ended.empty()) return;
    const ScopeExit told([this] { tellers_.leave(); });
    for (const OperationPtr& operation : ended) operation->notify();
    ended.clear();
}

Status Group::explained(const Status& cause, std::string_view operation) const {
    std::string text = concat("group ", name_, operation, ": ", cause.message());
    Status status = cause;
    const Rank peer = cause.peer();
    if (peer >= 0 && peer < size_ && peer != rank_ && peers_.directory().knows_peers()) {
        const bootstrap::Endpoint& endpoint = peers_.directory().endpoint(peer);
        text += concat(" (rank ", peer, " is process ", endpoint.pid, " on ", endpoint.host, ")");
        status = status.with_process({.host = endpoint.host, .pid = endpoint.pid});
    }
    return status.with_message(concat(text, advice(cause)));
}

void Group::break_with(const Status& cause) {
    // Who aborts ends a connection attempt, which then looks as if it had timed out.
    cause_ = aborted_.load() && cause.code() == StatusCode::kTimeout
                 ? Status::aborted("abort was called on this group")
                 : cause;
    // A mismatch says itself what each side does.
    const bool says_what = collectives_.empty() || cause_.code() == StatusCode::kMismatch;
    broken_ = explained(cause_,
                        says_what ? std::string() : concat(", ", collectives_.front()->describe()));
    is_over_.store(true);
    // Before anything ends: then its caller uses its memory, which a peer may be reading.
    if (cause_.code() != StatusCode::kAborted) to_tell_ = peers_.out_of_reach();
    peers_.close(cause_);
    while (!collectives_.empty()) end_collective(broken_);
    mailbox_.fail_all(broken_, ended_);
}

void Group::break_from_outside(const Status& cause) {
    std::vector<OperationPtr> ended;
    {
        const std::lock_guard lock(mutex_);
        if (!broken_.is_ok()) return;
        break_with(reconsidered(cause));
        ended = take_ended();
    }
    tell(std::move(ended));
    waiter_->wake();
    tell_the_others();
}

Result<std::vector<Prediction>> Group::explain(CollectiveKind kind, std::size_t bytes) {
    PCCL_TRY(check_process());
    const std::lock_guard lock(mutex_);
    return selector_->explain(kind, block_bytes(kind, bytes, size_));
}

void Group::abort(const Status& reason) {
    if (made_in_.is_child()) return;
    aborted_.store(true);
    break_from_outside(reason);
}

Status Group::leave() {
    if (made_in_.is_child()) return Status::ok();
    Status found;
    {
        // Who holds the lock is in the middle of something.
        const std::unique_lock lock(mutex_, std::try_to_lock);
        const bool is_idle = lock.owns_lock() && broken_.is_ok() && collectives_.empty();
        if (is_idle && last_.magic != 0) found = compare_latest();
    }
    abort(found.is_ok() ? Status::aborted(concat("group ", name_, " was shut down")) : found);
    if (!tellers_.await_others(Deadline::after(timeout_.load())))
        log(LogLevel::kWarning, "group ", name_,
            " was shut down while a callback of it still runs");
    return found.is_ok() ? found : health();
}

Status Group::compare_latest() {
    PCCL_TRY(peers_.compare_latest(last_));
    const Status told = heard_.is_set() ? heard_.get() : peers_.look_for_failure();
    return told.code() == StatusCode::kMismatch ? told : Status::ok();
}

Status Group::health() const {
    PCCL_TRY(check_process());
    const std::lock_guard lock(mutex_);
    return broken_;
}

void Group::accept_link(const transport::LinkRequest& request,
                        std::unique_ptr<transport::RecvLink> link) {
    peers_.accepted(request, std::move(link));
}

void Group::accept_region(const transport::LinkRequest& request,
                          std::unique_ptr<transport::Region> region) {
    peers_.accepted(request, std::move(region));
}

}  // namespace pccl::comm
