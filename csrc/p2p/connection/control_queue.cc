// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/connection/control_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace pccl::p2p {
namespace {

bool is_pointless(const std::shared_ptr<TransferRequest>& about) {
    return about != nullptr && about->has_failed();
}

}  // namespace

Result<bool> ControlQueue::send(transport::RmaLink& link, std::uint64_t posts) {
    bool sent = false;
    while (!waiting_.empty()) {
        QueuedMessage& message = waiting_.front();
        if (!is_pointless(message.about)) {
            PCCL_ASSIGN_OR_RETURN(const bool taken, link.notify(message.bytes));
            if (!taken) break;
            sent = true;
            message.posts = posts;
            sent_.push_back(std::move(message));
        }
        waiting_.pop_front();
    }
    return sent;
}

void ControlQueue::fail_post(std::uint64_t post) {
    const auto first = std::ranges::find_if(
        sent_, [post](const QueuedMessage& message) { return message.posts > post; });
    waiting_.insert(waiting_.begin(), std::make_move_iterator(first),
                    std::make_move_iterator(sent_.end()));
    sent_.erase(first, sent_.end());
}

void ControlQueue::end_posts_below(std::uint64_t post) {
    while (!sent_.empty() && sent_.front().posts <= post) sent_.pop_front();
}

}  // namespace pccl::p2p
