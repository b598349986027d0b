// The messages that a connection is to send.
//
// A link drops a message if anything failed that was posted before it and had not been told
// (rma.h): it cannot know that the failure was another transfer's. So a message that was sent is
// kept until all that was posted before it is over, and sent again if one of these failed, unless
// that is the transfer which it speaks of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "csrc/p2p/transfer_request.h"
#include "csrc/transport/rma.h"

namespace pccl::p2p {

class ControlQueue {
   public:
    static constexpr std::size_t kMost = 8192;

    [[nodiscard]] bool has_room() const { return waiting_.size() < kMost; }
    [[nodiscard]] bool is_empty() const { return waiting_.empty() && sent_.empty(); }
    /// `about` may be null. To be sent at once, or as soon as there is room.
    void add(std::vector<std::byte> bytes, std::shared_ptr<TransferRequest> about) {
        waiting_.push_back({std::move(bytes), std::move(about), 0});
    }
    /// Sends what `link` takes, behind as many posts as there were so far; whether that was any.
    Result<bool> send(transport::RmaLink& link, std::uint64_t posts);
    /// Post number `post` has failed, which the link has told.
    void failed(std::uint64_t post);
    /// All posts below `post` are over.
    void over(std::uint64_t post);

   private:
    struct QueuedMessage {
        std::vector<std::byte> bytes;
        std::shared_ptr<TransferRequest> about;
        std::uint64_t posts;  // before it
    };
    std::deque<QueuedMessage> waiting_;
    std::deque<QueuedMessage> sent_;  // in the order of `posts`
};

}  // namespace pccl::p2p
