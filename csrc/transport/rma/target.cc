// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/target.h"

#include <algorithm>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/transport/rma.h"

namespace pccl::transport {

Status RmaTarget::begin_request(const RmaFrame& head, std::vector<RmaExtent> list) {
    if (head.number != next_requested_++) return rma_protocol_error("a request out of turn");
    // The limit covers requests and answers of both ends.
    if (outbox_.size() > 2 * (kRmaWindow + kMostRmaNotifications) ||
        outbox_.listed() > 2 * kRmaListed)
        return rma_protocol_error("too many requests");
    auto range = range_of(head, std::move(list));
    if (!range.is_ok()) return rma_protocol_error(range.status().message());
    range_ = std::move(*range);
    bytes_requested_ += head.bytes;
    if (head.kind == RmaFrameKind::kWrite)
        begin_write();
    else
        begin_read(head);
    return Status::ok();
}

void RmaTarget::begin_write() {
    const auto device = registry_.find_device(range_);
    write_outcome_ = outcome_of(device.status());
    if (device.is_ok() && *device >= 0) write_receiver_ = receiver_into_range(*device);
}

void RmaTarget::begin_read(const RmaFrame& head) {
    RmaFrame answer = frame_of(RmaFrameKind::kData, head.number);
    answer.bytes = head.bytes;
    outbox_.add_data(answer, std::move(range_));
    ++reads_requested_;
}

std::shared_ptr<GpuReceiver> RmaTarget::receiver_into_range(int device) {
    return std::make_shared<GpuReceiver>(GpuTransfer(
        staging_, device, range_.blocks,
        [this, range = range_](const GpuBegin& begin) { return registry_.copy(range, begin); }));
}

Status RmaTarget::note_write_failure(const Status& status) {
    const bool is_peers =
        status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kInvalidArgument;
    if (status.is_ok() || !is_peers) return status;
    write_outcome_ = outcome_of(status);
    write_receiver_.reset();
    return Status::ok();
}

void RmaTarget::end_write(const RmaFrame& head) {
    // The bytes have moved: check that the registration is still the same.
    if (write_outcome_ == RmaOutcome::kOk)
        write_outcome_ = outcome_of(registry_.use(range_, [](MutableBytes) {}));
    RmaFrame answer = frame_of(RmaFrameKind::kDone, head.number);
    if (write_receiver_ != nullptr) return await_landing(answer);
    answer.outcome = write_outcome_;
    if (write_outcome_ != RmaOutcome::kOk) refuse_request(failed_writes_);
    outbox_.add(answer);
}

void RmaTarget::await_landing(const RmaFrame& answer) {
    ++landings_requested_;
    outbox_.add_landing(answer,
                        [this, range = range_, receiver = std::exchange(write_receiver_, nullptr)] {
                            return landing_outcome(*receiver, range);
                        });
}

Result<std::optional<RmaOutcome>> RmaTarget::landing_outcome(GpuReceiver& receiver,
                                                             const RmaRange& range) {
    const auto is_there = receiver.has_landed();
    PCCL_TRY(is_there.status());
    if (!*is_there) return std::optional<RmaOutcome>();
    const RmaOutcome outcome = outcome_of(registry_.find_device(range).status());
    note_landing(outcome);
    return std::optional(outcome);
}

void RmaTarget::note_landing(RmaOutcome outcome) {
    ++landings_done_;
    if (outcome != RmaOutcome::kOk) {
        refuse_request(failed_writes_);
        for (PendingNotification& notification : pending_notifications_)
            if (notification.behind_landings >= landings_done_) ++notification.failed_writes;
    }
    deliver_notifications();
}

void RmaTarget::note_read_served(RmaOutcome outcome) {
    ++reads_served_;
    if (outcome != RmaOutcome::kOk) refuse_request(failed_reads_);
    deliver_notifications();
}

void RmaTarget::refuse_request(std::uint64_t& failed) {
    ++failed;
    registry_.note_refusal();
}

Status RmaTarget::begin_notification(const RmaFrame& head) {
    if (head.bytes == 0 || head.bytes > RmaLink::kMostNotification)
        return rma_protocol_error(concat("a notification of ", head.bytes, " bytes"));
    if (pending_notifications_.size() + inbox_.size() >= kMostRmaNotifications)
        return rma_protocol_error("too many notifications");
    notification_.clear();
    return Status::ok();
}

void RmaTarget::end_notification(const RmaFrame& head) {
    pending_notifications_.push_back({.bytes = std::exchange(notification_, {}),
                                      .behind_reads = reads_requested_,
                                      .behind_landings = landings_requested_,
                                      .failures_known = head.failed,
                                      .failed_writes = failed_writes_});
    deliver_notifications();
}

void RmaTarget::deliver_notifications() {
    for (; !pending_notifications_.empty(); pending_notifications_.pop_front()) {
        PendingNotification& notification = pending_notifications_.front();
        if (notification.behind_reads != reads_served_ ||
            notification.behind_landings > landings_done_)
            return;
        if (notification.failures_known == kRmaUnconditional ||
            notification.failures_known == notification.failed_writes + failed_reads_)
            inbox_.push_back(std::move(notification.bytes));
        else
            acknowledge_notification();
    }
}

void RmaTarget::acknowledge_notification() { outbox_.add(frame_of(RmaFrameKind::kTaken, 0)); }

std::vector<std::byte> RmaTarget::take_notification() {
    std::vector<std::byte> notification = std::move(inbox_.front());
    inbox_.pop_front();
    acknowledge_notification();
    return notification;
}

std::optional<std::vector<std::byte>> RmaTarget::preview_notification() {
    const auto next = std::ranges::find_if(
        pending_notifications_, [this](const PendingNotification& notification) {
            return !notification.is_previewed && notification.behind_landings > landings_done_;
        });
    if (next == pending_notifications_.end()) return std::nullopt;
    next->is_previewed = true;
    return next->bytes;
}

}  // namespace pccl::transport
