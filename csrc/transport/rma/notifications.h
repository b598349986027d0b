// Notifications on a stream that carries nothing else: a length of 4 bytes, then the notification.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/transport/link.h"

namespace pccl::transport {

/// Where a link is with the pieces that were posted, in their order.
struct RmaProgress {
    std::uint64_t over = 0;    // pieces that are complete, well or not
    std::uint64_t failed = 0;  // of these
};

/// Holds notifications back until the pieces before them are over (RmaLink::notify()).
class PCCL_API RmaNotificationSender {
   public:
    static constexpr std::size_t kMostWaiting = 64;
    static constexpr std::size_t kMostReady = 64 * kKiB;  // but for the last notification

    [[nodiscard]] bool has_room() const {
        return waiting_.size() < kMostWaiting && ready_.size() < kMostReady;
    }
    [[nodiscard]] bool is_empty() const { return waiting_.empty() && sent_ == ready_.size(); }
    /// To be sent when `when.over` pieces are over, if `when.failed` have failed by then.
    void add(std::span<const std::byte> notification, const RmaProgress& when);
    /// How many pieces may be over at once, behind the first `begun` ones: reached() must be called
    /// between what is before a notification and what is behind it.
    [[nodiscard]] std::uint64_t until_next(std::uint64_t begun) const;
    void reached(const RmaProgress& now);
    /// Sends what the stream takes of notifications whose time has come.
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
    /// The next whole notification, if it is here. kPeerLost for a length that cannot be.
    Result<std::optional<std::vector<std::byte>>> next(RecvLink& stream);

   private:
    /// Bytes of the notification that have not come, its length first.
    [[nodiscard]] Result<std::size_t> missing() const;

    std::vector<std::byte> frame_;  // what has come
};

/// kInvalidArgument unless it has 1 to RmaLink::kMostNotification bytes.
[[nodiscard]] PCCL_API Status check_rma_notification(std::span<const std::byte> notification);

}  // namespace pccl::transport
