// SPDX-License-Identifier: Apache-2.0

// One end of a link of over_links.h: initiator and target at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/transport/rma.h"
#include "csrc/transport/rma/frames.h"
#include "csrc/transport/rma/gpu_staging_path.h"
#include "csrc/transport/rma/outbox.h"
#include "csrc/transport/rma/posts.h"
#include "csrc/transport/rma/registry.h"
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
    Result<bool> notify(std::span<const std::byte> notification) override;
    [[nodiscard]] bool is_flushed() const override { return outbox_.is_flushed(); }
    Result<std::size_t> poll(std::span<RmaCompletion> into) override;
    Status advance() override;
    [[nodiscard]] bool has_moved() const override { return moved_; }
    [[nodiscard]] bool awaits_copies() const override {
        return stalled_ || !landing_.empty() || outbox_.awaits_copies();
    }
    Result<std::optional<std::vector<std::byte>>> next_notification() override;
    std::optional<std::vector<std::byte>> preview_notification() override;
    Status look() override;
    void abort(const Status& reason) override;

   private:
    /// Pieces of one request.
    struct RequestedPieces {
        RmaOp op;
        const RmaPiece* first;  // names the two memories
        RmaBlocks here;
        RmaBlocks there;
    };
    /// Request of this end that is not answered.
    struct PendingRequest {
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
    /// Notification of the peer that waits for the peer's earlier reads and landings.
    struct PendingNotification {
        std::vector<std::byte> bytes;
        std::uint64_t behind_reads;     // reads that had come before it
        std::uint64_t behind_landings;  // landings of writes that had come before it
        std::uint64_t failures_known;   // failures reported to the peer's program
        std::uint64_t failed_writes;    // failed writes that had come before it
        bool is_previewed = false;
    };

    Status check() { return status_.is_set() ? status_.get() : Status::ok(); }
    Status progress();
    Result<bool> receive_some();
    /// Receives a part of a long payload straight into its destination; 0 where there is none, or
    /// where nobody needs it.
    Result<std::size_t> receive_straight();
    Result<bool> send_some();
    /// Handles a failure of the outgoing stream, which is reported once nothing more comes on the
    /// other.
    Status half_close();
    [[nodiscard]] bool has_room() const;
    void request(RequestedPieces asked, RmaPost& post);
    /// Finishes answered requests, up to a read whose bytes are in flight; returns whether there
    /// were any.
    Result<bool> land_reads();
    /// Drops everything in flight after a failure.
    void settle();

    // Steps of receiving: a header, then its list and payload.
    Status take(Bytes& here);
    Status take_head(Bytes& here);
    [[nodiscard]] bool has_head() const;
    Status begin();
    Status begin_request();
    Status begin_write();
    Status begin_read();
    Status begin_notification();
    Status begin_data();
    Status done();
    Status taken();
    /// Takes a prefix of `bytes` and returns its length.
    Result<std::size_t> take_payload(Bytes bytes);
    /// Receives into the current block, if many bytes of the block are missing.
    Result<std::size_t> receive_block(const RmaBlocks& blocks, MutableBytes memory);
    Result<std::size_t> take_into_receiver(GpuReceiver& receiver, Bytes bytes);
    Result<std::size_t> receive_into_receiver(GpuReceiver& receiver);
    /// Returns the receiver of a payload to memory of a GPU; null for others.
    [[nodiscard]] GpuReceiver* receiver();
    std::shared_ptr<GpuReceiver> receiver_into_range(int device);
    /// Classifies an error of the receiver of a write: an error of the registration is sent to the
    /// peer as its outcome.
    Status note_failure(const Status& status);
    void end();
    void end_write();
    void await_landing(const RmaFrame& answer);
    Result<std::optional<RmaOutcome>> landed(GpuReceiver& receiver, const RmaRange& range);
    void note_landing(RmaOutcome outcome);
    void end_notification();
    void deliver();
    void credit();
    /// Refuses a request of the peer, and counts it in `failed`.
    void refuse(std::uint64_t& failed);
    [[nodiscard]] Status protocol_error(std::string_view what) const;

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

    RmaPosts posts_;
    std::deque<PendingRequest> requests_;
    std::deque<PendingRequest> landing_;  // answered, but after reads that are in flight to a GPU
    std::uint64_t next_number_ = 0;
    std::uint64_t bytes_asked_ = 0;       // of requests_
    std::size_t blocks_listed_ = 0;       // in requests_
    std::size_t notifications_sent_ = 0;  // and not acknowledged

    RmaFrame head_{};
    std::size_t head_bytes_ = 0;                   // received so far
    std::vector<RmaExtent> list_;                  // behind the head
    std::size_t list_bytes_ = 0;                   // received so far
    RmaRange range_;                               // of the incoming request
    RmaBlocks::BlockPosition place_;               // of the payload, in its blocks
    std::uint64_t left_ = 0;                       // of the payload
    RmaOutcome write_outcome_{};                   // of the incoming write
    std::shared_ptr<GpuReceiver> write_receiver_;  // of the incoming write, into memory of a GPU
    std::vector<std::byte> notification_;          // incoming
    std::uint64_t next_asked_ = 0;                 // number of the peer's next request
    std::uint64_t reads_asked_ = 0;
    std::uint64_t reads_served_ = 0;
    std::uint64_t failed_reads_ = 0;
    std::uint64_t failed_writes_ = 0;
    std::uint64_t landings_asked_ = 0;  // writes into memory of GPUs that have arrived
    std::uint64_t landings_done_ = 0;   // those of them that have landed
    std::deque<PendingNotification> pending_notifications_;
    std::deque<std::vector<std::byte>> inbox_;
};

}  // namespace pccl::transport
