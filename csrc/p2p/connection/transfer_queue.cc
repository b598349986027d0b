// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/connection/transfer_queue.h"

#include <span>
#include <vector>

namespace pccl::p2p {

Result<bool> TransferQueue::post_some(transport::RmaLink& link, const TransferPtr& request) {
    if (const auto run = request->next_run()) return post_run(link, request, *run);
    const std::size_t count = request->next(steps_);
    if (count == 0) {
        request->posted_nothing();
        return true;
    }
    for (std::size_t i = 0; i < count; ++i) pieces_[i] = steps_[i].piece;
    PCCL_ASSIGN_OR_RETURN(const std::size_t taken,
                          link.post(request->args().op, std::span(pieces_).first(count), posts_));
    if (taken == 0) return false;
    request->posted(taken, steps_[taken - 1].after);
    note_posted(request);
    return true;
}

Result<bool> TransferQueue::post_run(transport::RmaLink& link, const TransferPtr& request,
                                     const transport::RmaRun& run) {
    PCCL_ASSIGN_OR_RETURN(const std::size_t taken, link.post_run(request->args().op, run, posts_));
    if (taken == 0) return false;
    request->posted_of_run(taken);
    note_posted(request);
    return true;
}

Status TransferQueue::post_in_order(transport::RmaLink& link, const TransferPtr& request) {
    std::vector<PlanStep> steps(kOrderedBatch);
    std::vector<transport::RmaPiece> pieces;
    while (const std::size_t count = request->next(steps)) {
        pieces.clear();
        for (std::size_t i = 0; i < count; ++i) pieces.push_back(steps[i].piece);
        PCCL_TRY(link.read_in_order(pieces, posts_, *request->args().in_order_of));
        request->posted(count, steps[count - 1].after);
        note_posted(request);
    }
    return Status::ok();
}

}  // namespace pccl::p2p
