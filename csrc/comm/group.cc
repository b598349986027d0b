#include "csrc/comm/group.h"

#include <algorithm>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/text.h"

namespace pccl::comm {

Group::Group(Runtime& runtime, const GroupIdentity& identity, const CommunicatorOptions& options)
    : rank_(options.rank),
      size_(options.size),
      name_(options.name),
      algorithm_(options.algorithm.empty() ? process_config().algorithm : options.algorithm),
      runtime_(runtime),
      waiter_(runtime.waiter()),
      timeout_(options.timeout),
      connections_(runtime, identity,
                   {.rank = options.rank,
                    .size = options.size,
                    .group_name = options.name,
                    .allowed = options.transports}),
      mailbox_(options.rank, options.size) {}

Status Group::register_remote_infos(const Roster& roster, Deadline deadline) {
    const std::lock_guard lock(mutex_);
    PCCL_TRY(connections_.register_remote_infos(roster, deadline));
    PCCL_ASSIGN_OR_RETURN(Tuning tuning, Tuning::parse(roster.tuning));
    selector_.emplace(roster, rank_, connections_.board(),
                      Preferences{.wanted = algorithm_, .tuning = std::move(tuning)});
    return Status::ok();
}

Deadline Group::deadline(OptionalTimeout timeout) const {
    return Deadline::after(timeout.value_or(timeout_.load(std::memory_order_relaxed)));
}

Status Group::run(const Collective& collective, OptionalTimeout timeout) {
    PCCL_TRY(check(collective));
    std::unique_lock lock(mutex_);
    PCCL_ASSIGN_OR_RETURN(auto operation, prepare(collective));
    operation->begin(nullptr, deadline(timeout));
    if (!collectives_.empty() || !try_at_once(*operation)) {
        collectives_.push_back(operation);
        lock.unlock();
        PCCL_TRY(help(*operation, Until::kDone, Deadline::never()));
        lock.lock();
    }
    spare_ = std::move(operation);
    return Status::ok();
}

/// Most collectives of a board are done at the first try, with nothing in the queue.
bool Group::try_at_once(CollectiveOperation& operation) {
    if (connections_.board() == nullptr) return false;
    bool moved = false;
    const Result<bool> done = operation.advance(connections_, moved);
    return done.is_ok() && *done;
}

Result<Event> Group::submit(const Collective& collective, OptionalTimeout timeout) {
    PCCL_TRY(check(collective));
    std::shared_ptr<CollectiveOperation> operation;
    {
        const std::lock_guard lock(mutex_);
        PCCL_ASSIGN_OR_RETURN(operation, prepare(collective));
        operation->begin(shared_from_this(), deadline(timeout));
        collectives_.push_back(operation);
    }
    leave_to_background(operation);
    return Event(operation);
}

Result<Event> Group::post(MessageOperation::Envelope envelope, OptionalTimeout timeout) {
    const bool any =
        envelope.direction == MessageOperation::Direction::kReceive && envelope.peer == kAnySource;
    if (!any && (envelope.peer < 0 || envelope.peer >= size_))
        return Status::invalid_argument(
            concat("rank ", envelope.peer, " is not in group ", name_, " of ", size_));
    auto message = std::make_shared<MessageOperation>(envelope);
    message->begin(shared_from_this(), deadline(timeout));
    {
        const std::lock_guard lock(mutex_);
        if (!broken_.is_ok()) return broken_;
        mailbox_.post(message);
    }
    leave_to_background(message);
    return Event(message);
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

Result<std::shared_ptr<CollectiveOperation>> Group::prepare(const Collective& collective) {
    if (runtime_.is_forked())
        return Status::unavailable(concat("group ", name_,
                                          " belongs to the parent of this forked process; "
                                          "make a new group here, in a process started by spawn"));
    if (!broken_.is_ok()) return broken_;
    PCCL_ASSIGN_OR_RETURN(const Choice* choice, selector_->choose(collective));
    abi::CollectiveHeader header = choice->header;
    header.sequence = static_cast<std::uint32_t>(sequence_.fetch_add(1) + 1);
    auto operation = take_spare();
    operation->prepare(collective,
                       {choice->plan, choice->cut, choice->on_board, connections_.board()}, header,
                       size_);
    return operation;
}

Status Group::help(Operation& operation, Until until, Deadline deadline) {
    transport::Backoff backoff(*waiter_);
    const auto reached = [&] {
        if (operation.is_done()) return true;
        if (until == Until::kDone) return false;
        const std::lock_guard lock(mutex_);
        return operation.is_flushed();
    };
    while (!reached()) {
        if (advance()) {
            backoff.reset();
            continue;
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
    std::vector<OperationPtr> ended;
    bool any_ended = false;
    {
        const std::lock_guard lock(mutex_);
        const std::size_t before = collectives_.size();
        Status status = broken_;
        if (status.is_ok()) status = advance_collectives(moved);
        if (status.is_ok()) status = mailbox_.advance(connections_, moved, ended_);
        if (!status.is_ok() && broken_.is_ok()) break_with(explained(status));
        any_ended = collectives_.size() != before || !ended_.empty();
        ended.swap(ended_);
    }
    for (const OperationPtr& operation : ended) operation->notify();
    if (any_ended) waiter_->wake();
    return moved;
}

Status Group::advance_collectives(bool& moved) {
    while (!collectives_.empty()) {
        CollectiveOperation& head = *collectives_.front();
        bool head_moved = false;
        PCCL_ASSIGN_OR_RETURN(const bool done, head.advance(connections_, head_moved));
        moved |= head_moved;
        if (!done) return head_moved || !head.deadline().passed() ? Status::ok() : too_late(head);
        moved = true;
        end_collective(Status::ok());
    }
    return Status::ok();
}

Status Group::too_late(const Operation& operation) const {
    return Status::timeout(
        concat("timed out: the timeout passed while waiting for ", operation.awaited()));
}

void Group::end_collective(Status status) {
    auto operation = std::move(collectives_.front());
    collectives_.pop_front();
    operation->finish(std::move(status));
    // Only the caller of run() holds the other reference of a synchronous operation, and it is
    // looking.
    if (operation->has_callbacks()) ended_.push_back(std::move(operation));
}

Status Group::explained(const Status& status) const {
    if (collectives_.empty()) return status.with_context(concat("group ", name_));
    return status.with_context(concat("group ", name_, ", ", collectives_.front()->describe()));
}

void Group::break_with(const Status& reason) {
    broken_ = reason;
    while (!collectives_.empty()) end_collective(reason);
    mailbox_.fail_all(reason, ended_);
    // What a forked child gives up is its parent's.
    if (!runtime_.is_forked()) connections_.close(reason);
}

Result<std::vector<Prediction>> Group::explain(CollectiveKind kind, std::size_t bytes) {
    const bool has_blocks = schedule::blocks(kind, schedule::Buffer::kInput, size_) > 1 ||
                            schedule::blocks(kind, schedule::Buffer::kOutput, size_) > 1;
    const std::lock_guard lock(mutex_);
    return selector_->explain(kind, has_blocks ? bytes / static_cast<std::size_t>(size_) : bytes);
}

void Group::abort(const Status& reason) {
    std::vector<OperationPtr> ended;
    {
        const std::lock_guard lock(mutex_);
        if (!broken_.is_ok()) return;
        break_with(reason);
        ended.swap(ended_);
    }
    for (const OperationPtr& operation : ended) operation->notify();
    waiter_->wake();
}

Status Group::health() const {
    const std::lock_guard lock(mutex_);
    return broken_;
}

void Group::accept_link(const transport::LinkRequest& request,
                        std::unique_ptr<transport::RecvLink> link) {
    connections_.accepted(request, std::move(link));
}

void Group::accept_region(const transport::LinkRequest& request,
                          std::unique_ptr<transport::Region> region) {
    connections_.accepted(request, std::move(region));
}

}  // namespace pccl::comm
