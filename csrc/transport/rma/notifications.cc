// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/notifications.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/transport/rma.h"

namespace pccl::transport {

Status check_rma_notification(std::span<const std::byte> notification) {
    if (!notification.empty() && notification.size() <= RmaLink::kMostNotification)
        return Status::ok();
    return Status::invalid_argument(concat("a notification of ", notification.size(),
                                           " bytes: 1 to ", RmaLink::kMostNotification,
                                           " are possible"));
}

void RmaNotificationSender::add(std::span<const std::byte> notification, const RmaProgress& when) {
    waiting_.push_back(
        {.when = when, .notification = {notification.begin(), notification.end()}, .after = {}});
}

void RmaNotificationSender::announce(std::span<const std::byte> notification,
                                     const RmaProgress& when, std::vector<RmaImmediate> after) {
    append_notification(ready_, notification, after);
    waiting_.push_back(
        {.when = when, .notification = {}, .after = std::move(after), .number = next_number_++});
}

std::uint64_t RmaNotificationSender::until_next(std::uint64_t begun) const {
    for (const Waiting& notification : waiting_)
        if (notification.when.over > begun) return notification.when.over - begun;
    return std::numeric_limits<std::uint64_t>::max();
}

void RmaNotificationSender::reached(const RmaProgress& now, const RmaImmediates& immediates) {
    for (; reached_ < waiting_.size() && waiting_[reached_].when.over <= now.over; ++reached_)
        waiting_[reached_].is_failed = waiting_[reached_].when.failed != now.failed;
    confirm_arrived(immediates);
    for (; reached_ > 0 && settle(waiting_.front(), immediates); --reached_) waiting_.pop_front();
}

bool RmaNotificationSender::settle(const Waiting& first, const RmaImmediates& immediates) {
    using Kind = RmaNotificationFrame::Kind;
    using State = RmaImmediates::State;
    if (first.after.empty()) {
        if (first.is_failed) return true;
        append_notification(ready_, first.notification, {});
        ++next_number_;
        return true;
    }
    const auto is_any = [&](State state) {
        return std::ranges::any_of(first.after, [&](const RmaImmediate& immediate) {
            return immediates.state_of(immediate) == state;
        });
    };
    if (first.is_failed) {
        append_verdict(ready_, Kind::kDrop, first.number);
    } else if (is_any(State::kLost)) {
        append_verdict(ready_, Kind::kConfirm, first.number);
    } else {
        if (is_any(State::kInFlight)) return false;
        arrived_ = first.number;
    }
    return true;
}

void RmaNotificationSender::confirm_arrived(const RmaImmediates& immediates) {
    const std::uint64_t lost = immediates.lost_pairs();
    if (std::exchange(lost_pairs_, lost) == lost || !arrived_) return;
    append_verdict(ready_, RmaNotificationFrame::Kind::kConfirm, *std::exchange(arrived_, {}));
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

Result<std::optional<std::vector<std::byte>>> RmaNotificationReceiver::next(
    RecvLink& stream, RmaImmediates& immediates) {
    while (!is_first_due(immediates)) {
        if (pending_.size() >= kMostPending) return std::optional<std::vector<std::byte>>();
        PCCL_ASSIGN_OR_RETURN(auto frame, reader_.next(stream));
        if (!frame) return std::optional<std::vector<std::byte>>();
        PCCL_TRY(take(*std::move(frame)));
    }
    std::vector<std::byte> notification = std::move(pending_.front().notification);
    pending_.pop_front();
    ++first_;
    return std::optional(std::move(notification));
}

bool RmaNotificationReceiver::is_first_due(RmaImmediates& immediates) {
    for (; !pending_.empty() && pending_.front().is_dropped; ++first_) pending_.pop_front();
    return !pending_.empty() &&
           std::ranges::all_of(pending_.front().after, [&](const RmaImmediate& immediate) {
               return immediates.has_arrived(immediate);
           });
}

Status RmaNotificationReceiver::take(RmaNotificationFrame frame) {
    using Kind = RmaNotificationFrame::Kind;
    if (frame.kind == Kind::kConfirm || frame.kind == Kind::kDrop) return take_verdict(frame);
    pending_.push_back(
        {.notification = std::move(frame.notification), .after = std::move(frame.after)});
    return Status::ok();
}

Status RmaNotificationReceiver::take_verdict(const RmaNotificationFrame& frame) {
    if (frame.number >= first_ + pending_.size())
        return Status::peer_lost(kNoRank, concat("the peer sent a verdict on notification ",
                                                 frame.number, " of ", first_ + pending_.size()));
    if (frame.number < first_) return Status::ok();  // its immediates had arrived
    const std::size_t index = frame.number - first_;
    if (frame.kind == RmaNotificationFrame::Kind::kDrop)
        pending_[index].is_dropped = true;
    else
        for (std::size_t i = 0; i <= index; ++i) pending_[i].after.clear();
    return Status::ok();
}

}  // namespace pccl::transport
