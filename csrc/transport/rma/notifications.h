// SPDX-License-Identifier: Apache-2.0

// Notifications of links whose initiator moves the bytes (copy_link.h), on a stream that carries
// nothing else (notification_frames.h).
//
// A notification waits here until all pieces before it are complete. An announced one leaves at
// once instead, with immediates behind the writes before it: the peer delivers it when these have
// arrived. If a queue pair ends before that shows at this end, the notification is confirmed when
// all pieces are complete. If one of them has failed, it is dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/transport/link.h"
#include "csrc/transport/rma/immediates.h"
#include "csrc/transport/rma/notification_frames.h"

namespace pccl::transport {

/// Progress of a link with the posted pieces, in their order.
struct RmaProgress {
    std::uint64_t over = 0;    // complete pieces, successful or not
    std::uint64_t failed = 0;  // failed pieces among them
};

/// Sender of notifications (RmaLink::notify()).
class PCCL_API RmaNotificationSender {
   public:
    static constexpr std::size_t kMostWaiting = 64;
    static constexpr std::size_t kMostReady = 64 * kKiB;  // without the last notification

    [[nodiscard]] bool has_room() const {
        return waiting_.size() < kMostWaiting && ready_.size() < kMostReady;
    }
    [[nodiscard]] bool is_empty() const { return waiting_.empty() && sent_ == ready_.size(); }
    /// Returns whether announce() keeps the order: no notification waits here for pieces.
    [[nodiscard]] bool may_announce() const {
        return waiting_.empty() || !waiting_.back().after.empty();
    }
    /// Queues a notification. It is sent when `when.over` pieces are complete, if exactly
    /// `when.failed` have failed by then.
    void add(std::span<const std::byte> notification, const RmaProgress& when);
    /// Queues a notification that is sent at once, where may_announce(). `after`, one immediate at
    /// least, are behind all pieces that are not complete.
    void announce(std::span<const std::byte> notification, const RmaProgress& when,
                  std::vector<RmaImmediate> after);
    /// Returns how many pieces may complete together after the first `begun` ones: reached() must
    /// be called between the pieces before a notification and those after it.
    [[nodiscard]] std::uint64_t until_next(std::uint64_t begun) const;
    void reached(const RmaProgress& now, const RmaImmediates& immediates);
    /// Sends the frames that the stream takes.
    Status send(SendLink& stream);

   private:
    struct Waiting {
        RmaProgress when;
        std::vector<std::byte> notification;  // empty: it is announced
        std::vector<RmaImmediate> after;      // of an announced one
        std::uint64_t number = 0;             // of an announced one
        bool is_failed = false;               // once the pieces before it are complete
    };
    /// Returns false where the first one, whose pieces are complete, is announced and has
    /// immediates in flight.
    bool settle(const Waiting& first, const RmaImmediates& immediates);
    void confirm_arrived(const RmaImmediates& immediates);

    std::deque<Waiting> waiting_;
    std::size_t reached_ = 0;        // of waiting_: the pieces before them are complete
    std::vector<std::byte> ready_;   // frames
    std::size_t sent_ = 0;           // bytes of ready_
    std::uint64_t next_number_ = 0;  // of the next notification's frame
    /// The last announced one whose immediates have arrived. The peer may have read its frame only
    /// after the end of a queue pair, with which the arrivals are forgotten.
    std::optional<std::uint64_t> arrived_;
    std::uint64_t lost_pairs_ = 0;  // for which arrived_ was confirmed
};

class PCCL_API RmaNotificationReceiver {
   public:
    /// Returns the next notification, if it has arrived and is due. kPeerLost for invalid frames.
    Result<std::optional<std::vector<std::byte>>> next(RecvLink& stream, RmaImmediates& immediates);

   private:
    /// A sender announces at most RmaNotificationSender::kMostWaiting, and confirms by later frames
    /// none but these.
    static constexpr std::size_t kMostPending = 2 * RmaNotificationSender::kMostWaiting;
    struct Pending {
        std::vector<std::byte> notification;
        std::vector<RmaImmediate> after;  // empty: it is due
        bool is_dropped = false;
    };
    [[nodiscard]] bool is_first_due(RmaImmediates& immediates);
    Status take(RmaNotificationFrame frame);
    Status take_verdict(const RmaNotificationFrame& frame);

    RmaNotificationReader reader_;
    std::deque<Pending> pending_;
    std::uint64_t first_ = 0;  // number of the first of these
};

/// Returns kInvalidArgument unless the notification has 1 to RmaLink::kMostNotification bytes.
[[nodiscard]] PCCL_API Status check_rma_notification(std::span<const std::byte> notification);

}  // namespace pccl::transport
