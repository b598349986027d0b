// SPDX-License-Identifier: Apache-2.0

// Initiator of a link of over_links.h: the requests of this end, and the answers of the peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "csrc/transport/rma.h"
#include "csrc/transport/rma/frames.h"
#include "csrc/transport/rma/gpu_staging_path.h"
#include "csrc/transport/rma/outbox.h"
#include "csrc/transport/rma/posts.h"

namespace pccl::transport {

/// Request that is not answered.
struct RmaPendingRequest {
    RmaPost* post;
    RmaOp op;
    MutableBytes memory;
    RmaBlocks here;  // in `memory`
    std::uint64_t bytes;
    std::uint64_t number;
    bool arrived = false;                     // all bytes of a read
    std::shared_ptr<GpuReceiver> receiver{};  // of a read into memory of a GPU
    RmaOutcome outcome{};                     // once it is answered

    [[nodiscard]] bool has_to_land() const {
        return receiver != nullptr && outcome == RmaOutcome::kOk;
    }
};

class RmaInitiator {
   public:
    /// Both arguments must outlive the initiator.
    RmaInitiator(RmaOutbox& outbox, GpuStagingPath& staging) : outbox_(outbox), staging_(staging) {}

    // Calls of RmaLink, on a link without error:

    Result<std::size_t> post(RmaOp op, std::span<const RmaPiece> pieces, std::uint64_t ticket);
    /// Posts a run as one request; returns nullopt for a run that does not go in one.
    std::optional<std::size_t> post_run(RmaOp op, const RmaRun& run, std::uint64_t ticket);
    /// Sends a notification, unless a request before it fails: of these, `failures_known` failures
    /// are known. It is never dropped with kRmaUnconditional.
    Result<bool> notify(std::span<const std::byte> notification, std::uint64_t failures_known);

    /// Returns the failures that take_completions() has reported.
    [[nodiscard]] std::uint64_t failures_reported() const { return posts_.reported(); }
    /// Implements the functions of RmaStreamLink of these names.
    void mark_requests() {
        marks_.push_back(next_number_);
        note_end();
    }
    std::optional<std::uint64_t> take_failures_at_mark();
    /// Returns the number of requests so far.
    [[nodiscard]] std::uint64_t requests_made() const { return next_number_; }
    /// Returns the bytes of the requests that are not answered.
    [[nodiscard]] std::uint64_t bytes_requested() const { return bytes_requested_; }
    /// Returns whether all requests are complete.
    [[nodiscard]] bool is_idle() const { return requests_.empty() && landing_.empty(); }
    /// Returns completions as RmaLink::poll() does.
    std::size_t take_completions(std::span<RmaCompletion> into) {
        return posts_.take_completions(into);
    }
    /// Drops the requests that are not complete.
    void drop_requests() {
        requests_.clear();
        landing_.clear();
    }
    /// Completes all posts. Call drop_requests() first.
    void fail_posts(const Status& status) { posts_.fail_all(status); }
    /// Finishes answered requests, up to a read whose bytes are in flight; returns whether there
    /// were any.
    Result<bool> land_reads();
    [[nodiscard]] bool awaits_landings() const { return !landing_.empty(); }

    // Messages of the peer. Each returns kPeerLost for one that violates the protocol:

    /// Begins the bytes of a read, which first_request() is from then on, until end_data().
    Status begin_data(const RmaFrame& head);
    void end_data() { requests_.front().arrived = true; }
    /// Handles the outcome of a request.
    Status end_request(const RmaFrame& head);
    /// Handles the receipt for a notification.
    Status note_receipt();
    [[nodiscard]] const RmaPendingRequest& first_request() const { return requests_.front(); }

   private:
    /// Pieces of one request.
    struct RequestedPieces {
        RmaOp op;
        const RmaPiece* first;  // names the two memories
        RmaBlocks here;
        RmaBlocks there;
    };

    [[nodiscard]] bool has_room() const;
    /// Counts the failures at the marks below which all requests are over.
    void note_end();
    void add_request(RequestedPieces requested, RmaPost& post);

    RmaOutbox& outbox_;
    GpuStagingPath& staging_;  // of incoming bytes
    RmaPosts posts_;
    std::deque<RmaPendingRequest> requests_;
    std::deque<RmaPendingRequest> landing_;  // answered, but after reads in flight to a GPU
    std::uint64_t next_number_ = 0;
    std::deque<std::uint64_t> marks_;              // requests before each
    std::deque<std::uint64_t> failures_at_marks_;  // of the marks before marks_
    std::uint64_t bytes_requested_ = 0;            // of requests_
    std::size_t blocks_listed_ = 0;                // in requests_
    std::size_t notifications_sent_ = 0;           // and not acknowledged
};

}  // namespace pccl::transport
