#include "csrc/transport/rma/outbox.h"

#include <algorithm>
#include <array>

namespace pccl::transport {
namespace {

constexpr std::size_t kChunk = 256 * kKiB;  // read from a registration at a time
constexpr std::array<std::byte, 16 * kKiB> kZeros{};

}  // namespace

RmaOutcome outcome_of(const Status& use) {
    if (use.is_ok()) return RmaOutcome::kOk;
    return use.code() == StatusCode::kInvalidArgument ? RmaOutcome::kOutOfBounds
                                                      : RmaOutcome::kEnded;
}

void RmaOutbox::add_copy(const RmaFrame& head, Bytes payload) {
    messages_.push_back({.head = head, .payload = {}, .own = {payload.begin(), payload.end()}});
    messages_.back().payload = messages_.back().own;
}

std::size_t RmaOutbox::front_bytes() const {
    const RmaFrame& head = messages_.front().head;
    const bool has_payload = head.kind == RmaFrameKind::kWrite ||
                             head.kind == RmaFrameKind::kWord || head.kind == RmaFrameKind::kData;
    return sizeof head + (has_payload ? head.bytes : 0);
}

Result<bool> RmaOutbox::send(SendLink& stream, RmaRegistry& registry, const ReadServed& served) {
    bool moved = false;
    while (!messages_.empty()) {
        const RmaFrame& head = messages_.front().head;
        if (sent_ == 0 && head.kind == RmaFrameKind::kData) {
            outcome_ = outcome_of(registry.use(head.range(), [](MutableBytes) {}));
            if (outcome_ != RmaOutcome::kOk) answer(outcome_, served);
        }
        PCCL_ASSIGN_OR_RETURN(const std::size_t taken, send_part(stream, registry));
        if (taken == 0) break;
        moved = true;
        sent_ += taken;
        if (sent_ < front_bytes()) continue;
        if (head.kind == RmaFrameKind::kData) {
            answer(outcome_, served);
        } else {
            messages_.pop_front();
            sent_ = 0;
        }
    }
    PCCL_ASSIGN_OR_RETURN(flushed_, stream.flush(kRmaChannel));
    return moved;
}

void RmaOutbox::answer(RmaOutcome outcome, const ReadServed& served) {
    RmaFrame& head = messages_.front().head;
    head = {.magic = kRmaMagic,
            .kind = RmaFrameKind::kDone,
            .outcome = outcome,
            .reserved = 0,
            .number = head.number,
            .id = 0,
            .nonce = 0,
            .offset = 0,
            .bytes = 0,
            .failed = 0};
    sent_ = 0;
    served(outcome);
}

Result<std::size_t> RmaOutbox::send_part(SendLink& stream, RmaRegistry& registry) {
    const Message& front = messages_.front();
    const Flush flush = messages_.size() == 1 ? Flush::kNow : Flush::kLater;
    if (sent_ < sizeof front.head) {
        // A head leaves with what it is of: one call of the kernel, and one packet.
        const bool is_all = front_bytes() == sizeof front.head;
        return stream.send(kRmaChannel, std::as_bytes(std::span(&front.head, 1)).subspan(sent_),
                           is_all ? flush : Flush::kLater);
    }
    const std::size_t done = sent_ - sizeof front.head;
    if (front.head.kind != RmaFrameKind::kData)
        return stream.send(kRmaChannel, front.payload.subspan(done), flush);
    RmaRange rest = front.head.range();
    rest.offset += done;
    rest.bytes = std::min<std::uint64_t>(rest.bytes - done, kChunk);
    return send_registered(stream, registry, rest);
}

Result<std::size_t> RmaOutbox::send_registered(SendLink& stream, RmaRegistry& registry,
                                               RmaRange range) {
    Result<std::size_t> taken = std::size_t{0};
    const auto send = [&](Bytes bytes) { taken = stream.send(kRmaChannel, bytes, Flush::kLater); };
    if (outcome_ == RmaOutcome::kOk) outcome_ = outcome_of(registry.use(range, send));
    if (outcome_ != RmaOutcome::kOk)
        send(Bytes(kZeros).first(std::min<std::size_t>(range.bytes, kZeros.size())));
    return taken;
}

}  // namespace pccl::transport
