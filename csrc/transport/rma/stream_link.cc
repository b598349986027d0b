// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/stream_link.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/transport/rma/notifications.h"

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
// Bytes of all requests, without the last: a fraction of a second's work.
constexpr std::uint64_t kMostAsked = 256 * kMiB;

Status status_of(RmaOutcome outcome) {
    switch (outcome) {
        case RmaOutcome::kOk:
            return Status::ok();
        case RmaOutcome::kOutOfBounds:
            return Status::invalid_argument("the peer's registration is smaller than it was told");
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

std::size_t fill(MutableBytes into, std::size_t begun, Bytes& here) {
    const std::size_t count = std::min(here.size(), into.size() - begun);
    if (count > 0) std::memcpy(into.data() + begun, here.data(), count);
    here = here.subspan(count);
    return begun + count;
}

}  // namespace

bool RmaStreamLink::has_room() const {
    return posts_.has_room() && requests_.size() < kRmaWindow && bytes_asked_ < kMostAsked;
}

Result<std::size_t> RmaStreamLink::post(RmaOp op, std::span<const RmaPiece> pieces,
                                        std::uint64_t ticket) {
    PCCL_TRY(check());
    PCCL_ASSIGN_OR_RETURN(const std::size_t count,
                          valid_prefix(pieces, has_room() ? kRmaListed - blocks_listed_ : 0));
    if (count == 0) return count;
    const auto valid = pieces.first(count);
    RmaPost& post = posts_.begin(ticket, 0);
    std::size_t taken = 0;
    while (taken < count && has_room()) {
        const auto rest = valid.subspan(taken);
        const auto together = rest.first(how_many_together(rest));
        request({.op = op,
                 .first = &together.front(),
                 .here = blocks_of(together, &RmaPiece::at),
                 .there = blocks_of(together, &RmaPiece::there)},
                post);
        taken += together.size();
    }
    return taken;
}

Result<std::size_t> RmaStreamLink::post_run(RmaOp op, const RmaRun& run, std::uint64_t ticket) {
    PCCL_TRY(check());
    const RmaPiece& first = run.first;
    const std::uint64_t count =
        first.bytes == 0 ? 0 : std::min(run.count, kRmaTogether / first.bytes);
    if (count < 2) return RmaLink::post_run(op, run, ticket);
    RmaBlocks here({first.at, first.bytes}, run.stride_here, count);
    RmaBlocks there({first.there, first.bytes}, run.stride_there, count);
    if (!here.is_within(first.local->memory().bytes) || !there.is_within(first.remote->bytes))
        return RmaLink::post_run(op, run, ticket);
    if (!has_room()) return std::size_t{0};
    request({.op = op, .first = &first, .here = std::move(here), .there = std::move(there)},
            posts_.begin(ticket, 0));
    return static_cast<std::size_t>(count);
}

void RmaStreamLink::request(RequestedPieces asked, RmaPost& post) {
    const Memory& memory = asked.first->local->memory();
    const bool writes = asked.op == RmaOp::kWrite;
    const bool is_of_gpu = memory.kind == abi::MemoryKind::kGpu;
    RmaRange range{.registration = {asked.first->remote->id, asked.first->remote->nonce},
                   .blocks = std::move(asked.there)};
    const RmaFrame head =
        request_of(writes ? RmaFrameKind::kWrite : RmaFrameKind::kRead, next_number_++, range);
    ++post.pieces;
    bytes_asked_ += head.bytes;
    blocks_listed_ += range.blocks.list().size();
    requests_.push_back({.post = &post,
                         .op = asked.op,
                         .memory = {memory.data, memory.bytes},
                         .here = std::move(asked.here),
                         .bytes = head.bytes,
                         .number = head.number});
    PendingRequest& made = requests_.back();
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

std::shared_ptr<GpuReceiver> RmaStreamLink::receiver_into_range(int device) {
    return std::make_shared<GpuReceiver>(GpuTransfer(
        staging_, device, range_.blocks,
        [this, range = range_](const GpuBegin& begin) { return registry_->copy(range, begin); }));
}

Result<bool> RmaStreamLink::notify(std::span<const std::byte> notification) {
    PCCL_TRY(check());
    PCCL_TRY(check_rma_notification(notification));
    if (notifications_sent_ == kMostRmaNotifications) return false;
    ++notifications_sent_;
    RmaFrame head = frame_of(RmaFrameKind::kNotification, 0);
    head.bytes = notification.size();
    head.failed = posts_.reported();
    outbox_.add_copy(head, notification);
    return true;
}

Result<std::size_t> RmaStreamLink::poll(std::span<RmaCompletion> into) {
    static_cast<void>(advance());
    if (status_.is_set()) {
        settle();
        posts_.fail_all(status_.get());
    }
    const std::size_t reported = posts_.take(into);
    if (reported == 0) PCCL_TRY(check());
    return reported;
}

void RmaStreamLink::settle() {
    requests_.clear();
    landing_.clear();
    outbox_.clear();
    write_receiver_.reset();
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
        PCCL_ASSIGN_OR_RETURN(const bool landed, land_reads());
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
    return outbox_.send(*streams_.out, *registry_, [this](RmaOutcome outcome) {
        ++reads_served_;
        if (outcome != RmaOutcome::kOk) refuse(failed_reads_);
        deliver();
    });
}

Result<bool> RmaStreamLink::receive_some() {
    PCCL_ASSIGN_OR_RETURN(const std::size_t straight, receive_straight());
    if (straight > 0) return true;
    PCCL_ASSIGN_OR_RETURN(const Bytes come, streams_.in->peek(kRmaChannel));
    Bytes here = come.first(std::min(come.size(), kMostReceived));
    const std::size_t most = here.size();
    stalled_ = false;
    while (!here.empty() && !stalled_) PCCL_TRY(take(here));
    const std::size_t count = most - here.size();
    if (count > 0) streams_.in->consume(kRmaChannel, count);
    return count > 0;
}

Result<bool> RmaStreamLink::land_reads() {
    bool landed = false;
    for (; !landing_.empty(); landing_.pop_front()) {
        const PendingRequest& first = landing_.front();
        if (first.has_to_land()) {
            PCCL_ASSIGN_OR_RETURN(const bool is_there, first.receiver->has_landed());
            if (!is_there) break;
        }
        posts_.finish(*first.post, status_of(first.outcome));
        landed = true;
    }
    return landed;
}

GpuReceiver* RmaStreamLink::receiver() {
    if (head_.kind == RmaFrameKind::kData) return requests_.front().receiver.get();
    return head_.kind == RmaFrameKind::kWrite ? write_receiver_.get() : nullptr;
}

Status RmaStreamLink::note_failure(const Status& status) {
    const bool is_peers =
        status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kInvalidArgument;
    if (status.is_ok() || head_.kind != RmaFrameKind::kWrite || !is_peers) return status;
    write_outcome_ = outcome_of(status);
    write_receiver_.reset();
    return Status::ok();
}

Result<std::size_t> RmaStreamLink::receive_straight() {
    Result<std::size_t> received = std::size_t{0};
    if (left_ < kLong) return received;
    if (GpuReceiver* const into = receiver()) {
        received = receive_into_receiver(*into);
    } else if (head_.kind == RmaFrameKind::kData) {
        const PendingRequest& request = requests_.front();
        received = receive_block(request.here, request.memory);
    } else if (head_.kind == RmaFrameKind::kWrite && write_outcome_ == RmaOutcome::kOk) {
        write_outcome_ = outcome_of(registry_->use(
            range_, [&](MutableBytes memory) { received = receive_block(range_.blocks, memory); }));
    }
    if (!received.is_ok() || *received == 0) return received;
    left_ -= *received;
    if (left_ == 0) end();
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
    if (received > 0) PCCL_TRY(note_failure(receiver.fill(received)));
    return received;
}

/// Takes a part off the front of `here`.
Status RmaStreamLink::take(Bytes& here) {
    if (!has_head()) {
        PCCL_TRY(take_head(here));
        if (!has_head()) return Status::ok();
        PCCL_TRY(begin());
    } else {
        const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(here.size(), left_));
        PCCL_ASSIGN_OR_RETURN(const std::size_t count, take_payload(here.first(most)));
        stalled_ = count == 0;
        left_ -= count;
        here = here.subspan(count);
    }
    if (left_ == 0) end();
    return Status::ok();
}

bool RmaStreamLink::has_head() const {
    return head_bytes_ == sizeof head_ && list_bytes_ == std::span(list_).size_bytes();
}

Status RmaStreamLink::take_head(Bytes& here) {
    if (head_bytes_ < sizeof head_) {
        head_bytes_ = fill(std::as_writable_bytes(std::span(&head_, 1)), head_bytes_, here);
        if (head_bytes_ < sizeof head_) return Status::ok();
        if (head_.magic != kRmaMagic) return protocol_error("no message of one-sided access");
        const auto listed = listed_behind(head_);
        if (!listed.is_ok()) return protocol_error(listed.status().message());
        list_.resize(*listed);
    }
    list_bytes_ = fill(std::as_writable_bytes(std::span(list_)), list_bytes_, here);
    return Status::ok();
}

Status RmaStreamLink::begin() {
    left_ = 0;
    place_ = {};
    switch (head_.kind) {
        case RmaFrameKind::kWrite:
        case RmaFrameKind::kRead:
            return begin_request();
        case RmaFrameKind::kNotification:
            return begin_notification();
        case RmaFrameKind::kData:
            return begin_data();
        case RmaFrameKind::kDone:
            return done();
        case RmaFrameKind::kTaken:
            return taken();
    }
    return protocol_error("a message of no kind");
}

Status RmaStreamLink::begin_request() {
    if (head_.number != next_asked_++) return protocol_error("a request out of turn");
    // The limit covers requests and answers of both ends.
    if (outbox_.size() > 2 * (kRmaWindow + kMostRmaNotifications) ||
        outbox_.listed() > 2 * kRmaListed)
        return protocol_error("too many requests");
    auto range = range_of(head_, std::exchange(list_, {}));
    list_bytes_ = 0;
    if (!range.is_ok()) return protocol_error(range.status().message());
    range_ = std::move(*range);
    return head_.kind == RmaFrameKind::kWrite ? begin_write() : begin_read();
}

Status RmaStreamLink::begin_write() {
    left_ = head_.bytes;
    const auto device = registry_->find_device(range_);
    write_outcome_ = outcome_of(device.status());
    if (device.is_ok() && *device >= 0) write_receiver_ = receiver_into_range(*device);
    return Status::ok();
}

Status RmaStreamLink::begin_read() {
    RmaFrame answer = frame_of(RmaFrameKind::kData, head_.number);
    answer.bytes = head_.bytes;
    outbox_.add_data(answer, std::move(range_));
    ++reads_asked_;
    return Status::ok();
}

Status RmaStreamLink::begin_notification() {
    if (head_.bytes == 0 || head_.bytes > kMostNotification)
        return protocol_error(concat("a notification of ", head_.bytes, " bytes"));
    if (pending_notifications_.size() + inbox_.size() >= kMostRmaNotifications)
        return protocol_error("too many notifications");
    left_ = head_.bytes;
    notification_.clear();
    return Status::ok();
}

Status RmaStreamLink::begin_data() {
    if (requests_.empty() || requests_.front().number != head_.number ||
        requests_.front().op != RmaOp::kRead || requests_.front().arrived ||
        requests_.front().bytes != head_.bytes)
        return protocol_error("bytes that nobody has asked for");
    left_ = head_.bytes;
    return Status::ok();
}

Status RmaStreamLink::done() {
    if (requests_.empty() || requests_.front().number != head_.number)
        return protocol_error("an answer that nobody has asked for");
    PendingRequest request = std::move(requests_.front());
    if (head_.outcome == RmaOutcome::kOk && request.op == RmaOp::kRead && !request.arrived)
        return protocol_error("an answer without bytes");
    requests_.pop_front();
    request.outcome = head_.outcome;
    bytes_asked_ -= request.bytes;
    blocks_listed_ -= request.here.list().size();
    // Completions keep the order of their requests.
    if (request.has_to_land() || !landing_.empty())
        landing_.push_back(std::move(request));
    else
        posts_.finish(*request.post, status_of(request.outcome));
    return Status::ok();
}

Status RmaStreamLink::taken() {
    if (notifications_sent_ == 0) return protocol_error("a receipt for no notification");
    --notifications_sent_;
    return Status::ok();
}

Result<std::size_t> RmaStreamLink::take_payload(Bytes bytes) {
    if (GpuReceiver* const into = receiver()) return take_into_receiver(*into, bytes);
    if (head_.kind == RmaFrameKind::kData) {
        const PendingRequest& request = requests_.front();
        request.here.scatter(request.memory, place_, bytes);
    } else if (head_.kind == RmaFrameKind::kNotification) {
        notification_.insert(notification_.end(), bytes.begin(), bytes.end());
    } else if (write_outcome_ == RmaOutcome::kOk) {
        write_outcome_ = outcome_of(registry_->use(
            range_, [&](MutableBytes memory) { range_.blocks.scatter(memory, place_, bytes); }));
    }
    return bytes.size();
}

Result<std::size_t> RmaStreamLink::take_into_receiver(GpuReceiver& receiver, Bytes bytes) {
    PCCL_ASSIGN_OR_RETURN(const MutableBytes room, receiver.room());
    const std::size_t count = std::min(bytes.size(), room.size());
    if (count == 0) return count;
    std::memcpy(room.data(), bytes.data(), count);
    PCCL_TRY(note_failure(receiver.fill(count)));
    return count;
}

void RmaStreamLink::end() {
    head_bytes_ = 0;
    if (head_.kind == RmaFrameKind::kData) requests_.front().arrived = true;
    if (head_.kind == RmaFrameKind::kWrite) end_write();
    if (head_.kind == RmaFrameKind::kNotification) end_notification();
}

void RmaStreamLink::end_write() {
    // The bytes have moved: check that the registration is still the same.
    if (write_outcome_ == RmaOutcome::kOk)
        write_outcome_ = outcome_of(registry_->use(range_, [](MutableBytes) {}));
    RmaFrame answer = frame_of(RmaFrameKind::kDone, head_.number);
    if (write_receiver_ != nullptr) return await_landing(answer);
    answer.outcome = write_outcome_;
    if (write_outcome_ != RmaOutcome::kOk) refuse(failed_writes_);
    outbox_.add(answer);
}

void RmaStreamLink::await_landing(const RmaFrame& answer) {
    ++landings_asked_;
    outbox_.add_landing(answer,
                        [this, range = range_, receiver = std::exchange(write_receiver_, nullptr)] {
                            return landed(*receiver, range);
                        });
}

Result<std::optional<RmaOutcome>> RmaStreamLink::landed(GpuReceiver& receiver,
                                                        const RmaRange& range) {
    const auto is_there = receiver.has_landed();
    PCCL_TRY(is_there.status());
    if (!*is_there) return std::optional<RmaOutcome>();
    const RmaOutcome outcome = outcome_of(registry_->find_device(range).status());
    note_landing(outcome);
    return std::optional(outcome);
}

void RmaStreamLink::note_landing(RmaOutcome outcome) {
    ++landings_done_;
    if (outcome != RmaOutcome::kOk) {
        refuse(failed_writes_);
        for (PendingNotification& notification : pending_notifications_)
            if (notification.behind_landings >= landings_done_) ++notification.failed_writes;
    }
    deliver();
}

void RmaStreamLink::end_notification() {
    pending_notifications_.push_back({.bytes = std::exchange(notification_, {}),
                                      .behind_reads = reads_asked_,
                                      .behind_landings = landings_asked_,
                                      .failures_known = head_.failed,
                                      .failed_writes = failed_writes_});
    deliver();
}

void RmaStreamLink::deliver() {
    for (; !pending_notifications_.empty(); pending_notifications_.pop_front()) {
        PendingNotification& notification = pending_notifications_.front();
        if (notification.behind_reads != reads_served_ ||
            notification.behind_landings > landings_done_)
            return;
        if (notification.failures_known == notification.failed_writes + failed_reads_)
            inbox_.push_back(std::move(notification.bytes));
        else
            credit();
    }
}

void RmaStreamLink::credit() { outbox_.add(frame_of(RmaFrameKind::kTaken, 0)); }

Result<std::optional<std::vector<std::byte>>> RmaStreamLink::next_notification() {
    if (inbox_.empty()) static_cast<void>(advance());
    if (inbox_.empty()) {
        PCCL_TRY(check());
        return std::optional<std::vector<std::byte>>();
    }
    std::optional<std::vector<std::byte>> notification(std::move(inbox_.front()));
    inbox_.pop_front();
    credit();
    return notification;
}

std::optional<std::vector<std::byte>> RmaStreamLink::preview_notification() {
    const auto next = std::ranges::find_if(
        pending_notifications_, [this](const PendingNotification& notification) {
            return !notification.is_previewed && notification.behind_landings > landings_done_;
        });
    if (next == pending_notifications_.end()) return std::nullopt;
    next->is_previewed = true;
    return next->bytes;
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

void RmaStreamLink::refuse(std::uint64_t& failed) {
    ++failed;
    registry_->note_refusal();
}

Status RmaStreamLink::protocol_error(std::string_view what) const {
    return Status::peer_lost(kNoRank, concat("the peer's link sent ", what));
}

}  // namespace pccl::transport
