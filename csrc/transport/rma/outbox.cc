// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/outbox.h"

#include <algorithm>
#include <array>

#include "csrc/base/ids.h"

namespace pccl::transport {
namespace {

// Bytes of a payload in one send: as many as one socket within a host takes at once.
constexpr std::size_t kChunk = 4 * kMiB;
constexpr std::size_t kMostGathered = 64;  // blocks in one send
// For shorter blocks, copying them together takes less time than the kernel takes for each.
constexpr std::size_t kShort = 1 * kKiB;
constexpr std::array<std::byte, 16 * kKiB> kZeros{};

}  // namespace

RmaOutcome outcome_of(const Status& use) {
    if (use.is_ok()) return RmaOutcome::kOk;
    return use.code() == StatusCode::kInvalidArgument ? RmaOutcome::kOutOfBounds
                                                      : RmaOutcome::kEnded;
}

void RmaOutbox::push(OutgoingFrame message) {
    listed_ += message.range.blocks.list().size();
    messages_.push_back(std::move(message));
}

void RmaOutbox::pop() {
    listed_ -= messages_.front().range.blocks.list().size();
    messages_.pop_front();
    begin_front();
}

void RmaOutbox::begin_front() {
    sent_ = 0;
    place_ = {};
}

void RmaOutbox::add_copy(const RmaFrame& head, Bytes payload) {
    push({.head = head,
          .from = RmaExtent{.bytes = payload.size()},
          .own = {payload.begin(), payload.end()}});
    messages_.back().memory = messages_.back().own;
}

void RmaOutbox::add_gpu_write(const RmaFrame& head, RmaRange range, const Memory& memory,
                              RmaBlocks from) {
    push({.head = head, .range = std::move(range)});
    messages_.back().source = std::make_unique<GpuSource>(
        GpuTransfer(staging_, memory.device, std::move(from), lend_own(memory)));
}

void RmaOutbox::add_landing(const RmaFrame& head, Landing landing) {
    push({.head = head, .landing = std::move(landing)});
}

bool RmaOutbox::awaits_copies() const {
    if (messages_.empty()) return false;
    const OutgoingFrame& front = messages_.front();
    return front.landing != nullptr || (front.source != nullptr && front.source->is_waiting());
}

std::uint64_t RmaOutbox::front_bytes() const {
    const OutgoingFrame& front = messages_.front();
    const RmaFrameKind kind = front.head.kind;
    const bool has_payload = kind == RmaFrameKind::kWrite || kind == RmaFrameKind::kNotification ||
                             kind == RmaFrameKind::kData;
    return sizeof front.head + front.list().size() + (has_payload ? front.head.bytes : 0);
}

Result<bool> RmaOutbox::send(SendLink& stream, RmaRegistry& registry, const ReadServed& served) {
    bool moved = false;
    while (!messages_.empty()) {
        const RmaFrame& head = messages_.front().head;
        PCCL_ASSIGN_OR_RETURN(const bool ready, is_ready(registry, served));
        if (!ready) break;
        PCCL_ASSIGN_OR_RETURN(const std::size_t taken, send_part(stream, registry));
        if (taken == 0) break;
        moved = true;
        sent_ += taken;
        if (sent_ < front_bytes()) continue;
        if (head.kind == RmaFrameKind::kData)
            answer(outcome_, served);
        else
            pop();
    }
    PCCL_ASSIGN_OR_RETURN(flushed_, stream.flush(kRmaChannel));
    return moved;
}

Result<bool> RmaOutbox::is_ready(RmaRegistry& registry, const ReadServed& served) {
    if (sent_ > 0) return true;
    OutgoingFrame& front = messages_.front();
    if (front.landing != nullptr) {
        PCCL_ASSIGN_OR_RETURN(const auto landed, front.landing());
        if (!landed) return false;
        front.landing = nullptr;
        front.head.outcome = *landed;
    }
    if (front.head.kind == RmaFrameKind::kData) {
        open_front(registry);
        if (outcome_ != RmaOutcome::kOk) answer(outcome_, served);
    }
    return true;
}

void RmaOutbox::open_front(RmaRegistry& registry) {
    OutgoingFrame& front = messages_.front();
    const auto device = registry.find_device(front.range);
    outcome_ = outcome_of(device.status());
    if (!device.is_ok() || *device < 0 || front.source != nullptr) return;
    front.source = std::make_unique<GpuSource>(
        GpuTransfer(staging_, *device, front.range.blocks,
                    [&registry, range = front.range](const GpuBegin& begin) {
                        return registry.copy(range, begin);
                    }));
}

void RmaOutbox::answer(RmaOutcome outcome, const ReadServed& served) {
    OutgoingFrame& front = messages_.front();
    front.source = nullptr;
    front.head = frame_of(RmaFrameKind::kDone, front.head.number);
    front.head.outcome = outcome;
    begin_front();
    served(outcome);
}

Result<std::size_t> RmaOutbox::send_part(SendLink& stream, RmaRegistry& registry) {
    const OutgoingFrame& front = messages_.front();
    const Flush flush = messages_.size() == 1 ? Flush::kNow : Flush::kLater;
    const auto head = std::as_bytes(std::span(&front.head, 1));
    const Bytes list = front.list();
    if (sent_ >= head.size() + list.size()) return send_payload(stream, registry, flush);
    // A header leaves with the bytes that follow it: one system call, and one packet.
    const bool is_in_head = sent_ < head.size();
    const Bytes part = is_in_head ? head.subspan(sent_) : list.subspan(sent_ - head.size());
    const bool is_last = sent_ + part.size() == front_bytes();
    return stream.send(kRmaChannel, part, is_last ? flush : Flush::kLater);
}

Result<std::size_t> RmaOutbox::send_payload(SendLink& stream, RmaRegistry& registry, Flush flush) {
    const OutgoingFrame& front = messages_.front();
    if (front.head.kind == RmaFrameKind::kData)
        return front.source == nullptr ? send_registered(stream, registry)
                                       : send_fetched_registered(stream, registry);
    if (front.source != nullptr) return send_fetched(stream, *front.source, flush);
    return send_blocks(stream, front.memory, front.from, flush);
}

Result<std::size_t> RmaOutbox::send_blocks(SendLink& stream, Bytes memory, const RmaBlocks& blocks,
                                           Flush flush) {
    std::array<Bytes, kMostGathered> gathered;
    const auto pieces = std::span(gathered).first(blocks.gather(memory, place_, kChunk, gathered));
    if (pieces.size() > 1) flush = blocks.first().bytes < kShort ? Flush::kLater : Flush::kNow;
    PCCL_ASSIGN_OR_RETURN(const std::size_t taken,
                          stream.send_gathered(kRmaChannel, pieces, flush));
    blocks.advance(place_, taken);
    return taken;
}

Result<std::size_t> RmaOutbox::send_registered(SendLink& stream, RmaRegistry& registry) {
    const RmaRange& range = messages_.front().range;
    Result<std::size_t> taken = std::size_t{0};
    const auto send = [&](Bytes memory) {
        taken = send_blocks(stream, memory, range.blocks, Flush::kLater);
    };
    if (outcome_ == RmaOutcome::kOk) outcome_ = outcome_of(registry.use(range, send));
    return outcome_ == RmaOutcome::kOk ? taken : send_zeros(stream);
}

Result<std::size_t> RmaOutbox::send_zeros(SendLink& stream) {
    const auto left =
        static_cast<std::size_t>(std::min<std::uint64_t>(front_bytes() - sent_, kZeros.size()));
    return stream.send(kRmaChannel, Bytes(kZeros).first(left), Flush::kLater);
}

Result<std::size_t> RmaOutbox::send_fetched(SendLink& stream, GpuSource& source, Flush flush) {
    PCCL_ASSIGN_OR_RETURN(const Bytes come, source.peek());
    if (come.empty()) return std::size_t{0};
    PCCL_ASSIGN_OR_RETURN(const std::size_t taken, stream.send(kRmaChannel, come, flush));
    if (taken > 0) source.consume(taken);
    return taken;
}

Result<std::size_t> RmaOutbox::send_fetched_registered(SendLink& stream, RmaRegistry& registry) {
    if (outcome_ == RmaOutcome::kOk) {
        const auto taken = send_fetched(stream, *messages_.front().source, Flush::kLater);
        const Status here = registry.find_device(messages_.front().range).status();
        // An error of copy engines ends the link.
        if (here.is_ok()) return taken;
        outcome_ = outcome_of(here);
        if (taken.is_ok() && *taken > 0) return taken;
    }
    return send_zeros(stream);
}

}  // namespace pccl::transport
