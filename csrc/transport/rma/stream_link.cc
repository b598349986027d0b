// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/stream_link.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "csrc/base/ids.h"

namespace pccl::transport {
namespace {

// Rounds before poll() returns: each moves as much as the streams buffer.
constexpr int kRounds = 16;
constexpr std::size_t kMostReceived = 1 * kMiB;
// Missing bytes of a block from which on it is received straight into its destination; shorter
// blocks are received together.
constexpr std::size_t kLong = 16 * kKiB;
constexpr std::size_t kMostStraight = 256 * kKiB;  // bytes, during which no registration can end
constexpr Duration kOnTheWay = std::chrono::milliseconds(200);

std::size_t fill(MutableBytes into, std::size_t begun, Bytes& here) {
    const std::size_t count = std::min(here.size(), into.size() - begun);
    if (count > 0) std::memcpy(into.data() + begun, here.data(), count);
    here = here.subspan(count);
    return begun + count;
}

}  // namespace

Result<std::size_t> RmaStreamLink::post(RmaOp op, std::span<const RmaPiece> pieces,
                                        std::uint64_t ticket) {
    PCCL_TRY(check());
    return initiator_.post(op, pieces, ticket);
}

Result<std::size_t> RmaStreamLink::post_run(RmaOp op, const RmaRun& run, std::uint64_t ticket) {
    PCCL_TRY(check());
    const std::optional<std::size_t> taken = initiator_.post_run(op, run, ticket);
    return taken ? Result<std::size_t>(*taken) : RmaLink::post_run(op, run, ticket);
}

Result<bool> RmaStreamLink::notify_if(std::span<const std::byte> notification,
                                      std::uint64_t failures_known) {
    PCCL_TRY(check());
    return initiator_.notify(notification, failures_known);
}

bool RmaStreamLink::announce(std::size_t lane, std::uint64_t requests) {
    if (outbox_.size() >= kMostRmaNotifications) return false;
    RmaFrame head = frame_of(RmaFrameKind::kOnLane, requests);
    head.count = lane;
    outbox_.add(head);
    return true;
}

Result<std::size_t> RmaStreamLink::poll(std::span<RmaCompletion> into) {
    static_cast<void>(advance());
    if (status_.is_set()) fail_posts();
    const std::size_t reported = initiator_.take_completions(into);
    if (reported == 0) PCCL_TRY(check());
    return reported;
}

void RmaStreamLink::fail_posts() {
    drop_in_flight();
    initiator_.fail_posts(status_.get());
}

void RmaStreamLink::drop_in_flight() {
    initiator_.drop_requests();
    outbox_.clear();
    target_.drop_write();
}

Status RmaStreamLink::advance() {
    moved_ = false;
    PCCL_TRY(check());
    const Status progressed = progress();
    return progressed.is_ok() ? progressed : status_.set(progressed);
}

Status RmaStreamLink::progress() {
    for (int round = 0; round < kRounds; ++round) {
        PCCL_ASSIGN_OR_RETURN(const bool received, receive_some());
        PCCL_ASSIGN_OR_RETURN(const bool landed, initiator_.land_reads());
        const auto sent = unsendable_.is_ok() ? send_some() : Result<bool>(false);
        if (!sent.is_ok()) {
            unsendable_ = sent.status();
            since_ = system_clock().now();
        }
        if (!received && !landed && sent.is_ok() && !*sent)
            return unsendable_.is_ok() ? Status::ok() : half_close();
        moved_ = true;
    }
    return Status::ok();
}

// Requests that the peer sent and answered before it left still count. Each stream has sockets of
// its own, so that the end of one may overtake bytes of the other.
Status RmaStreamLink::half_close() {
    const Status gone = streams_.in->look();
    PCCL_ASSIGN_OR_RETURN(const bool received, receive_some());
    const bool may_come = gone.is_ok() && system_clock().now() - since_ < kOnTheWay;
    return received || may_come ? Status::ok() : unsendable_;
}

Result<bool> RmaStreamLink::send_some() {
    return outbox_.send(*streams_.out, *registry_,
                        [this](RmaOutcome outcome) { target_.note_read_served(outcome); });
}

Result<bool> RmaStreamLink::receive_some() {
    PCCL_ASSIGN_OR_RETURN(const std::size_t straight, receive_straight());
    if (straight > 0) return true;
    PCCL_ASSIGN_OR_RETURN(const Bytes come, streams_.in->peek(kRmaChannel));
    Bytes here = come.first(std::min(come.size(), kMostReceived));
    const std::size_t most = here.size();
    stalled_ = false;
    while (!here.empty() && !stalled_) PCCL_TRY(take_bytes(here));
    const std::size_t count = most - here.size();
    if (count > 0) streams_.in->consume(kRmaChannel, count);
    return count > 0;
}

GpuReceiver* RmaStreamLink::receiver() {
    if (head_.kind == RmaFrameKind::kData) return initiator_.first_request().receiver.get();
    return head_.kind == RmaFrameKind::kWrite ? target_.write_receiver() : nullptr;
}

Status RmaStreamLink::fill_receiver(GpuReceiver& receiver, std::size_t count) {
    const Status filled = receiver.fill(count);
    return head_.kind == RmaFrameKind::kWrite ? target_.note_write_failure(filled) : filled;
}

Result<std::size_t> RmaStreamLink::receive_straight() {
    Result<std::size_t> received = std::size_t{0};
    if (left_ < kLong) return received;
    if (GpuReceiver* const into = receiver()) {
        received = receive_into_receiver(*into);
    } else if (head_.kind == RmaFrameKind::kData) {
        const RmaPendingRequest& request = initiator_.first_request();
        received = receive_block(request.here, request.memory);
    } else if (head_.kind == RmaFrameKind::kWrite && !target_.has_failed_write()) {
        target_.use_range([&](const RmaBlocks& blocks, MutableBytes memory) {
            received = receive_block(blocks, memory);
        });
    }
    if (!received.is_ok() || *received == 0) return received;
    left_ -= *received;
    if (left_ == 0) end_frame();
    return received;
}

Result<std::size_t> RmaStreamLink::receive_block(const RmaBlocks& blocks, MutableBytes memory) {
    const RmaExtent rest = blocks.rest(place_);
    if (rest.bytes < kLong) return std::size_t{0};
    const std::uint64_t most = std::min<std::uint64_t>(rest.bytes, kMostStraight);
    PCCL_ASSIGN_OR_RETURN(const std::size_t received,
                          streams_.in->receive(kRmaChannel, memory.subspan(rest.offset, most)));
    blocks.advance(place_, received);
    return received;
}

Result<std::size_t> RmaStreamLink::receive_into_receiver(GpuReceiver& receiver) {
    PCCL_ASSIGN_OR_RETURN(const MutableBytes room, receiver.room());
    if (room.empty()) return std::size_t{0};
    PCCL_ASSIGN_OR_RETURN(const std::size_t received, streams_.in->receive(kRmaChannel, room));
    if (received > 0) PCCL_TRY(fill_receiver(receiver, received));
    return received;
}

/// Takes a part off the front of `here`.
Status RmaStreamLink::take_bytes(Bytes& here) {
    if (!has_head()) {
        PCCL_TRY(take_head(here));
        if (!has_head()) return Status::ok();
        PCCL_TRY(begin_frame());
    } else {
        const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(here.size(), left_));
        PCCL_ASSIGN_OR_RETURN(const std::size_t count, take_payload(here.first(most)));
        stalled_ = count == 0;
        left_ -= count;
        here = here.subspan(count);
    }
    if (left_ == 0) end_frame();
    return Status::ok();
}

bool RmaStreamLink::has_head() const {
    return head_bytes_ == sizeof head_ && list_bytes_ == std::span(list_).size_bytes();
}

Status RmaStreamLink::take_head(Bytes& here) {
    if (head_bytes_ < sizeof head_) {
        head_bytes_ = fill(std::as_writable_bytes(std::span(&head_, 1)), head_bytes_, here);
        if (head_bytes_ < sizeof head_) return Status::ok();
        if (head_.magic != kRmaMagic) return rma_protocol_error("no message of one-sided access");
        const auto listed = listed_behind(head_);
        if (!listed.is_ok()) return rma_protocol_error(listed.status().message());
        list_.resize(*listed);
    }
    list_bytes_ = fill(std::as_writable_bytes(std::span(list_)), list_bytes_, here);
    return Status::ok();
}

Status RmaStreamLink::begin_frame() {
    left_ = 0;
    place_ = {};
    switch (head_.kind) {
        case RmaFrameKind::kWrite:
            left_ = head_.bytes;
            [[fallthrough]];
        case RmaFrameKind::kRead:
            list_bytes_ = 0;
            return target_.begin_request(head_, std::exchange(list_, {}));
        case RmaFrameKind::kNotification:
            left_ = head_.bytes;
            return target_.begin_notification(head_);
        case RmaFrameKind::kData:
            left_ = head_.bytes;
            return initiator_.begin_data(head_);
        case RmaFrameKind::kDone:
            return initiator_.end_request(head_);
        case RmaFrameKind::kTaken:
            return initiator_.note_receipt();
        case RmaFrameKind::kOnLane:
            return take_announcement();
    }
    return rma_protocol_error("a message of no kind");
}

Status RmaStreamLink::take_announcement() {
    if (head_.count >= announced_.size() || head_.number < announced_[head_.count])
        return rma_protocol_error("an impossible number of requests on a lane");
    announced_[head_.count] = head_.number;
    return Status::ok();
}

Result<std::size_t> RmaStreamLink::take_payload(Bytes bytes) {
    if (GpuReceiver* const into = receiver()) return take_into_receiver(*into, bytes);
    if (head_.kind == RmaFrameKind::kData) {
        const RmaPendingRequest& request = initiator_.first_request();
        request.here.scatter(request.memory, place_, bytes);
    } else if (head_.kind == RmaFrameKind::kNotification) {
        target_.add_notification_bytes(bytes);
    } else if (!target_.has_failed_write()) {
        target_.use_range([&](const RmaBlocks& blocks, MutableBytes memory) {
            blocks.scatter(memory, place_, bytes);
        });
    }
    return bytes.size();
}

Result<std::size_t> RmaStreamLink::take_into_receiver(GpuReceiver& receiver, Bytes bytes) {
    PCCL_ASSIGN_OR_RETURN(const MutableBytes room, receiver.room());
    const std::size_t count = std::min(bytes.size(), room.size());
    if (count == 0) return count;
    std::memcpy(room.data(), bytes.data(), count);
    PCCL_TRY(fill_receiver(receiver, count));
    return count;
}

void RmaStreamLink::end_frame() {
    head_bytes_ = 0;
    if (head_.kind == RmaFrameKind::kData) initiator_.end_data();
    if (head_.kind == RmaFrameKind::kWrite) target_.end_write(head_);
    if (head_.kind == RmaFrameKind::kNotification) target_.end_notification(head_);
}

Result<std::optional<std::vector<std::byte>>> RmaStreamLink::next_notification() {
    if (!target_.has_notification()) static_cast<void>(advance());
    if (!target_.has_notification()) {
        PCCL_TRY(check());
        return std::optional<std::vector<std::byte>>();
    }
    return std::optional(target_.take_notification());
}

Status RmaStreamLink::look() {
    PCCL_TRY(check());
    PCCL_TRY(streams_.out->look());
    return streams_.in->look();
}

void RmaStreamLink::abort(const Status& reason) {
    static_cast<void>(status_.set(reason));
    streams_.out->abort(reason);
    streams_.in->abort(reason);
}

}  // namespace pccl::transport
