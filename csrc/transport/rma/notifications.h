// SPDX-License-Identifier: Apache-2.0

// Notifications on a stream that carries nothing else: a length of 4 bytes, then the notification.
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

namespace pccl::transport {

/// Progress of a link with the posted pieces, in their order.
struct RmaProgress {
    std::uint64_t over = 0;    // complete pieces, successful or not
    std::uint64_t failed = 0;  // failed pieces among them
};

/// Sender that holds notifications back until the pieces before them are complete
/// (RmaLink::notify()).
class PCCL_API RmaNotificationSender {
   public:
    static constexpr std::size_t kMostWaiting = 64;
    static constexpr std::size_t kMostReady = 64 * kKiB;  // without the last notification

    [[nodiscard]] bool has_room() const {
        return waiting_.size() < kMostWaiting && ready_.size() < kMostReady;
    }
    [[nodiscard]] bool is_empty() const { return waiting_.empty() && sent_ == ready_.size(); }
    /// Queues a notification. It is sent when `when.over` pieces are complete, if exactly
    /// `when.failed` have failed by then.
    void add(std::span<const std::byte> notification, const RmaProgress& when);
    /// Returns how many pieces may complete together after the first `begun` ones: reached() must
    /// be called between the pieces before a notification and those after it.
    [[nodiscard]] std::uint64_t until_next(std::uint64_t begun) const;
    void reached(const RmaProgress& now);
    /// Sends the due notifications that the stream takes.
    Status send(SendLink& stream);

   private:
    struct Waiting {
        std::vector<std::byte> frame;
        RmaProgress when;
    };
    std::deque<Waiting> waiting_;
    std::vector<std::byte> ready_;  // frames
    std::size_t sent_ = 0;          // bytes of ready_
};

class PCCL_API RmaNotificationReceiver {
   public:
    /// Returns the next whole notification, if it has arrived. kPeerLost for an invalid length.
    Result<std::optional<std::vector<std::byte>>> next(RecvLink& stream);

   private:
    /// Returns how many bytes of the notification are missing, its length first.
    [[nodiscard]] Result<std::size_t> missing() const;

    std::vector<std::byte> frame_;  // bytes that have arrived
};

/// Returns kInvalidArgument unless the notification has 1 to RmaLink::kMostNotification bytes.
[[nodiscard]] PCCL_API Status check_rma_notification(std::span<const std::byte> notification);

}  // namespace pccl::transport
