#include "csrc/comm/collective_queue.h"

#include <utility>

#include "csrc/collective/fingerprint.h"

namespace pccl::comm {

CollectiveQueue::CollectivePtr CollectiveQueue::take_spare() {
    // A spare that somebody still holds an event of must keep its result.
    if (spare_ && spare_.use_count() == 1) return std::exchange(spare_, nullptr);
    return std::make_shared<CollectiveOperation>();
}

CollectiveQueue::CollectivePtr CollectiveQueue::prepare(const Collective& collective,
                                                        const Decision& decision, Board* board) {
    Decision numbered = decision;
    numbered.header.sequence = static_cast<std::uint32_t>(sequence_.fetch_add(1) + 1);
    numbered.header.generation = generation_;
    numbered.header.history = history_after(latest_);
    latest_ = numbered.header;
    auto operation = take_spare();
    operation->prepare(collective, std::move(numbered), board,
                       timeline_.is_on() ? &timeline_ : nullptr);
    return operation;
}

bool CollectiveQueue::is_late() const { return !is_empty() && front().deadline().passed(); }

AwaitedRanks CollectiveQueue::awaited() const {
    return is_empty() ? AwaitedRanks{} : front().awaited();
}

Status CollectiveQueue::advance(LinkTable& links, bool& moved, Ended& ended) {
    while (!is_empty()) {
        bool head_moved = false;
        PCCL_ASSIGN_OR_RETURN(const bool done, collectives_.front()->advance(links, head_moved));
        moved |= head_moved;
        if (!done) return Status::ok();
        moved = true;
        end_front(Status::ok(), ended);
    }
    return Status::ok();
}

void CollectiveQueue::fail_all(const Status& reason, Ended& ended) {
    while (!is_empty()) end_front(reason, ended);
}

void CollectiveQueue::end_front(const Status& status, Ended& ended) {
    auto operation = std::move(collectives_.front());
    collectives_.pop_front();
    operation->finish(status);
    // Only the caller of Group::run() holds the other reference of a synchronous operation, and it
    // is looking.
    if (operation->has_callbacks()) ended.push_back(std::move(operation));
}

}  // namespace pccl::comm
