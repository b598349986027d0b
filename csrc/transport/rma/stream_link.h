// SPDX-License-Identifier: Apache-2.0

// One end of a link of over_links.h: initiator (initiator.h) and target (target.h) on two streams.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/transport/rma.h"
#include "csrc/transport/rma/frames.h"
#include "csrc/transport/rma/gpu_staging_path.h"
#include "csrc/transport/rma/initiator.h"
#include "csrc/transport/rma/outbox.h"
#include "csrc/transport/rma/registry.h"
#include "csrc/transport/rma/target.h"
#include "csrc/transport/sticky_status.h"

namespace pccl::transport {

class RmaStreamLink final : public RmaLink {
   public:
    RmaStreamLink(RmaStreams streams, std::shared_ptr<RmaRegistry> registry)
        : streams_(std::move(streams)), registry_(std::move(registry)) {}

    [[nodiscard]] TransportKind kind() const override { return streams_.out->kind(); }
    Result<std::size_t> post(RmaOp op, std::span<const RmaPiece> pieces,
                             std::uint64_t ticket) override;
    Result<std::size_t> post_run(RmaOp op, const RmaRun& run, std::uint64_t ticket) override;
    Result<bool> notify(std::span<const std::byte> notification) override {
        return notify_if(notification, failures_reported());
    }
    [[nodiscard]] bool is_flushed() const override { return outbox_.is_flushed(); }
    Result<std::size_t> poll(std::span<RmaCompletion> into) override;
    Status advance() override;
    [[nodiscard]] bool has_moved() const override { return moved_; }
    [[nodiscard]] bool awaits_copies() const override {
        return stalled_ || initiator_.awaits_landings() || outbox_.awaits_copies();
    }
    Result<std::optional<std::vector<std::byte>>> next_notification() override;
    std::optional<std::vector<std::byte>> preview_notification() override {
        return target_.preview_notification();
    }
    Status look() override;
    void abort(const Status& reason) override;

    // For a bundle (bundle.h):

    /// Sends a notification that no failure drops.
    Result<bool> notify_unconditionally(std::span<const std::byte> notification) {
        return notify_if(notification, kRmaUnconditional);
    }
    /// Marks the requests so far.
    void mark_requests() { initiator_.mark_requests(); }
    /// Returns how many requests had failed when all requests below the first mark were over, and
    /// removes that mark; nullopt while they are not over, or without a mark.
    std::optional<std::uint64_t> take_failures_at_mark() {
        return initiator_.take_failures_at_mark();
    }
    [[nodiscard]] std::uint64_t failures_reported() const { return initiator_.failures_reported(); }
    /// Returns the error of the link; ok while there is none.
    [[nodiscard]] Status check() const { return status_.is_set() ? status_.get() : Status::ok(); }
    /// Returns completions as poll() does, without progress.
    std::size_t take_completions(std::span<RmaCompletion> into) {
        return initiator_.take_completions(into);
    }
    /// Completes all posts of a failed link with its error.
    void fail_posts();
    /// Returns the number of requests that this end has made.
    [[nodiscard]] std::uint64_t requests_made() const { return initiator_.requests_made(); }
    /// Returns the bytes of those of them that are not answered.
    [[nodiscard]] std::uint64_t bytes_requested() const { return initiator_.bytes_requested(); }
    /// Returns the number of requests that have come from the peer.
    [[nodiscard]] std::uint64_t requests_begun() const { return target_.requests_begun(); }
    /// Returns the bytes of these requests.
    [[nodiscard]] std::uint64_t bytes_begun() const { return target_.bytes_begun(); }
    /// Returns whether nothing is under way, as far as this end shows.
    [[nodiscard]] bool is_idle() const {
        return head_bytes_ == 0 && initiator_.is_idle() && outbox_.is_flushed();
    }
    /// Notifies the peer that `requests` requests so far are on a lane. Returns false when there is
    /// no room now.
    bool announce(std::size_t lane, std::uint64_t requests);
    /// Returns how many requests the peer has put on a lane so far.
    [[nodiscard]] std::uint64_t announced(std::size_t lane) const { return announced_.at(lane); }

   private:
    Result<bool> notify_if(std::span<const std::byte> notification, std::uint64_t failures_known);
    Status progress();
    Status take_announcement();
    Result<bool> receive_some();
    /// Receives a part of a long payload straight into its destination; 0 where there is none, or
    /// where nobody needs it.
    Result<std::size_t> receive_straight();
    Result<bool> send_some();
    /// Handles a failure of the outgoing stream, which is reported once nothing more comes on the
    /// other.
    Status half_close();
    /// Drops everything in flight after a failure.
    void drop_in_flight();

    // Steps of receiving: a header, then its list and payload.
    Status take_bytes(Bytes& here);
    Status take_head(Bytes& here);
    [[nodiscard]] bool has_head() const;
    Status begin_frame();
    void end_frame();
    /// Takes a prefix of `bytes` and returns its length.
    Result<std::size_t> take_payload(Bytes bytes);
    /// Receives into the current block, if many bytes of the block are missing.
    Result<std::size_t> receive_block(const RmaBlocks& blocks, MutableBytes memory);
    Result<std::size_t> take_into_receiver(GpuReceiver& receiver, Bytes bytes);
    Result<std::size_t> receive_into_receiver(GpuReceiver& receiver);
    /// Returns the receiver of a payload to memory of a GPU; null for others.
    [[nodiscard]] GpuReceiver* receiver();
    Status fill_receiver(GpuReceiver& receiver, std::size_t count);

    RmaStreams streams_;
    const std::shared_ptr<RmaRegistry> registry_;
    StickyStatus status_;
    Status unsendable_;  // error of the outgoing stream, while earlier bytes of the peer may still
                         // come
    TimePoint since_{};  // time of that error
    bool moved_ = false;
    bool stalled_ = false;  // a receiver has no room for the bytes that have come
    RmaOutbox outbox_;
    GpuStagingPath staging_;  // of incoming bytes; declared before receivers
    RmaInitiator initiator_{outbox_, staging_};
    RmaTarget target_{*registry_, outbox_, staging_};

    RmaFrame head_{};
    std::size_t head_bytes_ = 0;                            // received so far
    std::vector<RmaExtent> list_;                           // behind the head
    std::size_t list_bytes_ = 0;                            // received so far
    RmaBlocks::BlockPosition place_;                        // of the payload, in its blocks
    std::uint64_t left_ = 0;                                // of the payload
    std::array<std::uint64_t, kMostRmaLanes> announced_{};  // requests of the peer, by lane
};

}  // namespace pccl::transport
