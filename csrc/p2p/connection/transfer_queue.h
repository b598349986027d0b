// SPDX-License-Identifier: Apache-2.0

// Transfers of a connection: those that wait to be posted, and the posts in flight.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "csrc/base/assert.h"
#include "csrc/p2p/transfers/transfer_request.h"
#include "csrc/transport/rma.h"

namespace pccl::p2p {

/// Not thread-safe: the connection's lock guards it.
class TransferQueue {
   public:
    using TransferPtr = std::shared_ptr<TransferRequest>;
    /// Most pieces that are posted in one step.
    static constexpr std::size_t kBatch = 128;

    [[nodiscard]] bool has_waiting() const { return !waiting_.empty(); }
    [[nodiscard]] bool has_in_flight() const { return !in_flight_.empty(); }
    [[nodiscard]] const std::deque<TransferPtr>& waiting() const { return waiting_; }
    [[nodiscard]] const std::map<std::uint64_t, TransferPtr>& in_flight() const {
        return in_flight_;
    }
    /// Returns the number of posts so far.
    [[nodiscard]] std::uint64_t posts() const { return posts_; }
    /// Returns the number of the first post that has not ended, or posts().
    [[nodiscard]] std::uint64_t first_open_post() const {
        return in_flight_.empty() ? posts_ : in_flight_.begin()->first;
    }

    /// Appends a transfer that waits to be posted.
    void add_waiting(TransferPtr request) { waiting_.push_back(std::move(request)); }
    /// Removes the first waiting transfer.
    void remove_front() { waiting_.pop_front(); }
    /// Posts a part of a transfer. Returns false when the link has no room.
    Result<bool> post_some(transport::RmaLink& link, const TransferPtr& request);
    /// Posts a whole read in stream order. It bypasses the waiting transfers.
    Status post_in_order(transport::RmaLink& link, const TransferPtr& request);
    /// Removes the post with that number, which is in flight, and returns its transfer.
    [[nodiscard]] TransferPtr take_post(std::uint64_t post) {
        const auto found = in_flight_.find(post);
        PCCL_ASSERT(found != in_flight_.end());
        TransferPtr request = std::move(found->second);
        in_flight_.erase(found);
        return request;
    }
    void clear_in_flight() { in_flight_.clear(); }
    void clear_waiting() { waiting_.clear(); }

   private:
    static constexpr std::size_t kOrderedBatch = 1000;

    Result<bool> post_run(transport::RmaLink& link, const TransferPtr& request,
                          const transport::RmaRun& run);
    /// Records that the link has accepted a post of `request`.
    void note_posted(const TransferPtr& request) {
        in_flight_.emplace_hint(in_flight_.end(), posts_, request);
        ++posts_;
    }

    std::deque<TransferPtr> waiting_;                 // not fully posted
    std::map<std::uint64_t, TransferPtr> in_flight_;  // by post number
    std::uint64_t posts_ = 0;                         // so far
    // Buffers of one step. They are members because clearing them takes longer than a small
    // transfer.
    std::array<PlanStep, kBatch> steps_;
    std::array<transport::RmaPiece, kBatch> pieces_;
};

}  // namespace pccl::p2p
