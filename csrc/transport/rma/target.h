// SPDX-License-Identifier: Apache-2.0

// Target of a link of over_links.h: the requests and notifications of the peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include <pccl/status.h>
#include "csrc/transport/rma/frames.h"
#include "csrc/transport/rma/gpu_staging_path.h"
#include "csrc/transport/rma/outbox.h"
#include "csrc/transport/rma/registry.h"

namespace pccl::transport {

class RmaTarget {
   public:
    /// All arguments must outlive the target.
    RmaTarget(RmaRegistry& registry, RmaOutbox& outbox, GpuStagingPath& staging)
        : registry_(registry), outbox_(outbox), staging_(staging) {}

    // Messages of the peer. begin_...() return kPeerLost for one that violates the protocol:

    /// Begins a request, whose list of blocks is `list`.
    Status begin_request(const RmaFrame& head, std::vector<RmaExtent> list);
    /// Returns the receiver of the incoming write to memory of a GPU; null for others.
    [[nodiscard]] GpuReceiver* write_receiver() const { return write_receiver_.get(); }
    [[nodiscard]] bool has_failed_write() const { return write_outcome_ != RmaOutcome::kOk; }
    /// Runs `use` on the blocks of the incoming write and the memory that contains them, and
    /// records the outcome.
    template <typename Use>
    void use_range(const Use& use) {
        write_outcome_ = outcome_of(
            registry_.use(range_, [&](MutableBytes memory) { use(range_.blocks, memory); }));
    }
    /// Classifies an error of the write's receiver: an error of the registration is sent to the
    /// peer as the outcome.
    Status note_write_failure(const Status& status);
    void end_write(const RmaFrame& head);
    /// Drops the incoming write after a failure of the link.
    void drop_write() { write_receiver_.reset(); }
    /// Handles the end of a read, once its bytes have been copied or it has failed.
    void note_read_served(RmaOutcome outcome);

    /// Returns the number of the peer's requests so far.
    [[nodiscard]] std::uint64_t requests_begun() const { return next_requested_; }
    /// Returns the bytes of these requests.
    [[nodiscard]] std::uint64_t bytes_begun() const { return bytes_requested_; }

    Status begin_notification(const RmaFrame& head);
    void add_notification_bytes(Bytes bytes) {
        notification_.insert(notification_.end(), bytes.begin(), bytes.end());
    }
    void end_notification(const RmaFrame& head);
    [[nodiscard]] bool has_notification() const { return !inbox_.empty(); }
    /// Takes the next notification, of which there is one, and acknowledges it.
    std::vector<std::byte> take_notification();
    /// Implements RmaLink::preview_notification().
    std::optional<std::vector<std::byte>> preview_notification();

   private:
    /// Notification that waits for the peer's earlier reads and landings.
    struct PendingNotification {
        std::vector<std::byte> bytes;
        std::uint64_t behind_reads;     // reads that had come before it
        std::uint64_t behind_landings;  // landings of writes that had come before it
        std::uint64_t failures_known;   // failures reported to the peer's program
        std::uint64_t failed_writes;    // failed writes that had come before it
        bool is_previewed = false;
    };

    void begin_write();
    void begin_read(const RmaFrame& head);
    std::shared_ptr<GpuReceiver> receiver_into_range(int device);
    void await_landing(const RmaFrame& answer);
    /// Returns the outcome of a write into memory of a GPU; nullopt while bytes are in flight.
    Result<std::optional<RmaOutcome>> landing_outcome(GpuReceiver& receiver, const RmaRange& range);
    void note_landing(RmaOutcome outcome);
    /// Delivers the notifications before which nothing is in progress any more.
    void deliver_notifications();
    void acknowledge_notification();
    /// Refuses a request of the peer, and counts it in `failed`.
    void refuse_request(std::uint64_t& failed);

    RmaRegistry& registry_;
    RmaOutbox& outbox_;
    GpuStagingPath& staging_;                      // of incoming bytes
    RmaRange range_;                               // of the incoming request
    RmaOutcome write_outcome_{};                   // of the incoming write
    std::shared_ptr<GpuReceiver> write_receiver_;  // of the incoming write, into memory of a GPU
    std::vector<std::byte> notification_;          // incoming
    std::uint64_t next_requested_ = 0;             // number of the peer's next request
    std::uint64_t bytes_requested_ = 0;
    std::uint64_t reads_requested_ = 0;
    std::uint64_t reads_served_ = 0;
    std::uint64_t failed_reads_ = 0;
    std::uint64_t failed_writes_ = 0;
    std::uint64_t landings_requested_ = 0;  // writes into memory of GPUs that have arrived
    std::uint64_t landings_done_ = 0;       // those of them that have landed
    std::deque<PendingNotification> pending_notifications_;
    std::deque<std::vector<std::byte>> inbox_;
};

}  // namespace pccl::transport
