// SPDX-License-Identifier: Apache-2.0

// Queue of the messages that a connection sends.
//
// A link drops a message if a post before it has failed and the failure was not reported yet
// (rma.h), because the link cannot attribute the failure to a transfer. The queue therefore keeps
// each sent message until all posts before it are over. If one of them failed, it sends the message
// again, unless the failed post belongs to the transfer that the message is about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "csrc/p2p/transfers/transfer_request.h"
#include "csrc/transport/rma.h"

namespace pccl::p2p {

class ControlQueue {
   public:
    static constexpr std::size_t kMost = 8192;

    [[nodiscard]] bool has_room() const { return waiting_.size() < kMost; }
    [[nodiscard]] bool is_empty() const { return waiting_.empty() && sent_.empty(); }
    /// Queues a message, which send() sends as soon as there is room. `about` may be null.
    void add(std::vector<std::byte> bytes, std::shared_ptr<TransferRequest> about) {
        waiting_.push_back({std::move(bytes), std::move(about), 0});
    }
    /// Sends as many messages as `link` accepts, ordered after the first `posts` posts. Returns
    /// whether any was sent.
    Result<bool> send(transport::RmaLink& link, std::uint64_t posts);
    /// Handles the failure of post number `post`, which the link has reported.
    void fail_post(std::uint64_t post);
    /// Handles the end of all posts below `post`.
    void end_posts_below(std::uint64_t post);

   private:
    struct QueuedMessage {
        std::vector<std::byte> bytes;
        std::shared_ptr<TransferRequest> about;
        std::uint64_t posts;  // number of posts before it
    };
    std::deque<QueuedMessage> waiting_;
    std::deque<QueuedMessage> sent_;  // in the order of `posts`
};

}  // namespace pccl::p2p
