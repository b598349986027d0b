// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/collective_queue.h"

#include <utility>

#include "csrc/collective/fingerprint.h"

namespace pccl::comm {

std::shared_ptr<CollectiveOperation> CollectiveQueue::take_spare() {
    // A spare that an event still refers to must keep its result.
    if (spare_ && spare_.use_count() == 1) return std::exchange(spare_, nullptr);
    return std::make_shared<CollectiveOperation>(executors_, flight_group_);
}

std::shared_ptr<CollectiveOperation> CollectiveQueue::prepare(const Collective& collective,
                                                              const Decision& decision) {
    Decision numbered = decision;
    numbered.header.sequence = static_cast<std::uint32_t>(sequence_.fetch_add(1) + 1);
    numbered.header.generation = generation_;
    numbered.header.history = history_after(latest_);
    latest_ = numbered.header;
    auto operation = take_spare();
    operation->prepare(collective, std::move(numbered));
    return operation;
}

bool CollectiveQueue::is_past_deadline() const {
    return !is_empty() && front().deadline().passed();
}

AwaitedRanks CollectiveQueue::awaited() const {
    return is_empty() ? AwaitedRanks{} : front().awaited();
}

Status CollectiveQueue::progress(bool& moved, runtime::EndedOperations& ended) {
    while (!is_empty()) {
        bool head_moved = false;
        PCCL_ASSIGN_OR_RETURN(const bool done, collectives_.front()->progress(head_moved));
        moved |= head_moved;
        if (!done) return Status::ok();
        moved = true;
        end_front(Status::ok(), ended);
    }
    return Status::ok();
}

void CollectiveQueue::fail_all(const Status& reason, runtime::EndedOperations& ended) {
    while (!is_empty()) end_front(reason, ended);
}

void CollectiveQueue::end_front(const Status& status, runtime::EndedOperations& ended) {
    auto operation = std::move(collectives_.front());
    collectives_.pop_front();
    operation->finish(status);
    // A synchronous operation has one other reference, that of the caller of Group::run(), which
    // polls it.
    if (operation->has_callbacks()) ended.add(std::move(operation));
}

}  // namespace pccl::comm
