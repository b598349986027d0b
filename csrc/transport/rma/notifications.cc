// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/notifications.h"

#include <cstring>
#include <limits>

#include "csrc/base/text/text.h"
#include "csrc/transport/rma.h"

namespace pccl::transport {
namespace {

using Length = std::uint32_t;

Length length_of(std::span<const std::byte> frame) {
    Length length = 0;
    std::memcpy(&length, frame.data(), sizeof length);
    return length;
}

}  // namespace

Status check_rma_notification(std::span<const std::byte> notification) {
    if (!notification.empty() && notification.size() <= RmaLink::kMostNotification)
        return Status::ok();
    return Status::invalid_argument(concat("a notification of ", notification.size(),
                                           " bytes: 1 to ", RmaLink::kMostNotification,
                                           " are possible"));
}

void RmaNotificationSender::add(std::span<const std::byte> notification, const RmaProgress& when) {
    const auto length = static_cast<Length>(notification.size());
    std::vector<std::byte> frame(sizeof length + notification.size());
    std::memcpy(frame.data(), &length, sizeof length);
    std::memcpy(frame.data() + sizeof length, notification.data(), notification.size());
    waiting_.push_back({std::move(frame), when});
}

std::uint64_t RmaNotificationSender::until_next(std::uint64_t begun) const {
    for (const Waiting& notification : waiting_)
        if (notification.when.over > begun) return notification.when.over - begun;
    return std::numeric_limits<std::uint64_t>::max();
}

void RmaNotificationSender::reached(const RmaProgress& now) {
    for (; !waiting_.empty() && waiting_.front().when.over <= now.over; waiting_.pop_front()) {
        const Waiting& notification = waiting_.front();
        if (notification.when.failed == now.failed)
            ready_.insert(ready_.end(), notification.frame.begin(), notification.frame.end());
    }
}

Status RmaNotificationSender::send(SendLink& stream) {
    if (sent_ == ready_.size()) return Status::ok();
    PCCL_ASSIGN_OR_RETURN(const std::size_t taken,
                          stream.send(kRmaChannel, std::span(ready_).subspan(sent_), Flush::kNow));
    sent_ += taken;
    if (sent_ < ready_.size()) return Status::ok();
    ready_.clear();
    sent_ = 0;
    return Status::ok();
}

Result<std::size_t> RmaNotificationReceiver::missing() const {
    if (frame_.size() < sizeof(Length)) return sizeof(Length) - frame_.size();
    const Length length = length_of(frame_);
    if (length > 0 && length <= RmaLink::kMostNotification)
        return sizeof(Length) + length - frame_.size();
    return Status::peer_lost(kNoRank, concat("the peer sent a notification of ", length, " bytes"));
}

Result<std::optional<std::vector<std::byte>>> RmaNotificationReceiver::next(RecvLink& stream) {
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(const std::size_t wanted, missing());
        if (wanted == 0) break;
        const std::size_t here = frame_.size();
        frame_.resize(here + wanted);
        const auto got = stream.receive(kRmaChannel, std::span(frame_).subspan(here));
        frame_.resize(here + (got.is_ok() ? *got : 0));
        PCCL_TRY(got.status());
        if (*got == 0) return std::optional<std::vector<std::byte>>();
    }
    frame_.erase(frame_.begin(), frame_.begin() + sizeof(Length));
    return std::optional(std::exchange(frame_, {}));
}

}  // namespace pccl::transport
