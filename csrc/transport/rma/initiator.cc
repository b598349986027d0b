// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/initiator.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/transport/rma/notifications.h"

namespace pccl::transport {
namespace {

// Bytes of all requests, without the last: a fraction of a second's work.
constexpr std::uint64_t kMostRequestedBytes = 256 * kMiB;

Status status_of(RmaOutcome outcome) {
    switch (outcome) {
        case RmaOutcome::kOk:
            return Status::ok();
        case RmaOutcome::kOutOfBounds:
            return Status::invalid_argument(
                "the peer's registration is smaller than its descriptor");
        case RmaOutcome::kEnded:
            break;
    }
    return Status::unavailable("the peer has ended the registration of this memory");
}

/// Returns how many of the first pieces, at least one, go in one request.
std::size_t how_many_together(std::span<const RmaPiece> pieces) {
    const RmaPiece& first = pieces.front();
    const std::size_t most = std::min(pieces.size(), RmaBlocks::kMostListed);
    if (first.bytes == 0 || first.bytes > kRmaTogether) return 1;
    std::uint64_t bytes = first.bytes;
    std::size_t count = 1;
    for (; count < most; ++count) {
        const RmaPiece& next = pieces[count];
        if (next.local != first.local || next.remote != first.remote || next.bytes == 0) break;
        if (next.bytes > kRmaTogether - bytes) break;
        bytes += next.bytes;
    }
    return count;
}

/// Returns the blocks of one side of the pieces.
RmaBlocks blocks_of(std::span<const RmaPiece> pieces, std::size_t RmaPiece::*offset) {
    const auto extent = [offset](const RmaPiece& piece) {
        return RmaExtent{.offset = piece.*offset, .bytes = piece.bytes};
    };
    if (pieces.size() == 1) return extent(pieces.front());
    std::vector<RmaExtent> list(pieces.size());
    std::ranges::transform(pieces, list.begin(), extent);
    return RmaBlocks(std::move(list));
}

}  // namespace

bool RmaInitiator::has_room() const {
    return posts_.has_room() && requests_.size() < kRmaWindow &&
           bytes_requested_ < kMostRequestedBytes;
}

Result<std::size_t> RmaInitiator::post(RmaOp op, std::span<const RmaPiece> pieces,
                                       std::uint64_t ticket) {
    PCCL_ASSIGN_OR_RETURN(const std::size_t count,
                          valid_prefix(pieces, has_room() ? kRmaListed - blocks_listed_ : 0));
    if (count == 0) return count;
    const auto valid = pieces.first(count);
    RmaPost& post = posts_.begin(ticket, 0);
    std::size_t taken = 0;
    while (taken < count && has_room()) {
        const auto rest = valid.subspan(taken);
        const auto together = rest.first(how_many_together(rest));
        add_request({.op = op,
                     .first = &together.front(),
                     .here = blocks_of(together, &RmaPiece::at),
                     .there = blocks_of(together, &RmaPiece::there)},
                    post);
        taken += together.size();
    }
    return taken;
}

std::optional<std::size_t> RmaInitiator::post_run(RmaOp op, const RmaRun& run,
                                                  std::uint64_t ticket) {
    const RmaPiece& first = run.first;
    const std::uint64_t count =
        first.bytes == 0 ? 0 : std::min(run.count, kRmaTogether / first.bytes);
    if (count < 2) return std::nullopt;
    RmaBlocks here({first.at, first.bytes}, run.stride_here, count);
    RmaBlocks there({first.there, first.bytes}, run.stride_there, count);
    if (!here.is_within(first.local->memory().bytes) || !there.is_within(first.remote->bytes))
        return std::nullopt;
    if (!has_room()) return std::size_t{0};
    add_request({.op = op, .first = &first, .here = std::move(here), .there = std::move(there)},
                posts_.begin(ticket, 0));
    return static_cast<std::size_t>(count);
}

void RmaInitiator::add_request(RequestedPieces requested, RmaPost& post) {
    const Memory& memory = requested.first->local->memory();
    const bool writes = requested.op == RmaOp::kWrite;
    const bool is_of_gpu = memory.kind == abi::MemoryKind::kGpu;
    RmaRange range{.registration = {requested.first->remote->id, requested.first->remote->nonce},
                   .blocks = std::move(requested.there)};
    const RmaFrame head =
        request_of(writes ? RmaFrameKind::kWrite : RmaFrameKind::kRead, next_number_++, range);
    ++post.pieces;
    bytes_requested_ += head.bytes;
    blocks_listed_ += range.blocks.list().size();
    requests_.push_back({.post = &post,
                         .op = requested.op,
                         .memory = {memory.data, memory.bytes},
                         .here = std::move(requested.here),
                         .bytes = head.bytes,
                         .number = head.number});
    RmaPendingRequest& made = requests_.back();
    if (!writes) {
        outbox_.add_read(head, std::move(range));
        if (is_of_gpu)
            made.receiver = std::make_shared<GpuReceiver>(
                GpuTransfer(staging_, memory.device, made.here, lend_own(memory)));
    } else if (is_of_gpu) {
        outbox_.add_gpu_write(head, std::move(range), memory, made.here);
    } else {
        outbox_.add_write(head, std::move(range), made.memory, made.here);
    }
}

Result<bool> RmaInitiator::notify(std::span<const std::byte> notification,
                                  std::uint64_t failures_known) {
    PCCL_TRY(check_rma_notification(notification));
    if (notifications_sent_ == kMostRmaNotifications) return false;
    ++notifications_sent_;
    RmaFrame head = frame_of(RmaFrameKind::kNotification, 0);
    head.bytes = notification.size();
    head.failed = failures_known;
    outbox_.add_copy(head, notification);
    return true;
}

Result<bool> RmaInitiator::land_reads() {
    bool landed = false;
    while (!landing_.empty()) {
        const RmaPendingRequest& first = landing_.front();
        if (first.has_to_land()) {
            PCCL_ASSIGN_OR_RETURN(const bool is_there, first.receiver->has_landed());
            if (!is_there) break;
        }
        posts_.finish(*first.post, status_of(first.outcome));
        landing_.pop_front();
        note_end();
        landed = true;
    }
    return landed;
}

void RmaInitiator::note_end() {
    const std::uint64_t over = next_number_ - requests_.size() - landing_.size();
    for (; !marks_.empty() && marks_.front() <= over; marks_.pop_front())
        failures_at_marks_.push_back(posts_.failed());
}

std::optional<std::uint64_t> RmaInitiator::take_failures_at_mark() {
    if (failures_at_marks_.empty()) return std::nullopt;
    const std::uint64_t failures = failures_at_marks_.front();
    failures_at_marks_.pop_front();
    return failures;
}

Status RmaInitiator::begin_data(const RmaFrame& head) {
    if (requests_.empty() || requests_.front().number != head.number ||
        requests_.front().op != RmaOp::kRead || requests_.front().arrived ||
        requests_.front().bytes != head.bytes)
        return rma_protocol_error("bytes that match no request");
    return Status::ok();
}

Status RmaInitiator::end_request(const RmaFrame& head) {
    if (requests_.empty() || requests_.front().number != head.number)
        return rma_protocol_error("an answer that matches no request");
    RmaPendingRequest request = std::move(requests_.front());
    if (head.outcome == RmaOutcome::kOk && request.op == RmaOp::kRead && !request.arrived)
        return rma_protocol_error("an answer without bytes");
    requests_.pop_front();
    request.outcome = head.outcome;
    bytes_requested_ -= request.bytes;
    blocks_listed_ -= request.here.list().size();
    // Completions keep the order of their requests.
    if (request.has_to_land() || !landing_.empty())
        landing_.push_back(std::move(request));
    else
        posts_.finish(*request.post, status_of(request.outcome));
    note_end();
    return Status::ok();
}

Status RmaInitiator::note_receipt() {
    if (notifications_sent_ == 0) return rma_protocol_error("a receipt for no notification");
    --notifications_sent_;
    return Status::ok();
}

}  // namespace pccl::transport
