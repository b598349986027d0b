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
    messages_.push_back({.head = head, .own = {payload.begin(), payload.end()}});
    messages_.back().payload = messages_.back().own;
}

void RmaOutbox::add_gpu_payload(const RmaFrame& head, const Memory& memory, std::size_t at) {
    const auto step = [this, device = memory.device, from = device_address(memory.data + at)](
                          std::uint64_t offset, MutableBytes stage) {
        return passage_.copy(
            device,
            {.to = device_address(stage.data()), .from = from + offset, .bytes = stage.size()});
    };
    messages_.push_back({.head = head});
    messages_.back().source = std::make_unique<GpuSource>(GpuTransfer{
        .passage = passage_, .device = memory.device, .bytes = head.bytes, .step = step});
}

void RmaOutbox::add_landing(const RmaFrame& head, Landing landing) {
    messages_.push_back({.head = head, .landing = std::move(landing)});
}

bool RmaOutbox::awaits_copies() const {
    if (messages_.empty()) return false;
    const Message& front = messages_.front();
    return front.landing != nullptr || (front.source != nullptr && front.source->is_waiting());
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
        PCCL_ASSIGN_OR_RETURN(const bool ready, is_ready(registry, served));
        if (!ready) break;
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

Result<bool> RmaOutbox::is_ready(RmaRegistry& registry, const ReadServed& served) {
    if (sent_ > 0) return true;
    Message& front = messages_.front();
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
    Message& front = messages_.front();
    const auto device = registry.find_device(front.head.range());
    outcome_ = outcome_of(device.status());
    if (!device.is_ok() || *device < 0 || front.source != nullptr) return;
    const auto step = [this, &registry, range = front.head.range(), device = *device](
                          std::uint64_t offset, MutableBytes stage) {
        const RmaRange part{.registration = range.registration,
                            .offset = range.offset + offset,
                            .bytes = stage.size()};
        return registry.copy(part, [&](const std::byte* at) {
            return passage_.copy(device, {.to = device_address(stage.data()),
                                          .from = device_address(at),
                                          .bytes = stage.size()});
        });
    };
    front.source = std::make_unique<GpuSource>(GpuTransfer{
        .passage = passage_, .device = *device, .bytes = front.head.bytes, .step = step});
}

void RmaOutbox::answer(RmaOutcome outcome, const ReadServed& served) {
    RmaFrame& head = messages_.front().head;
    messages_.front().source = nullptr;
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
    if (front.head.kind == RmaFrameKind::kWrite && front.source != nullptr)
        return send_fetched(stream, *front.source, flush);
    if (front.head.kind != RmaFrameKind::kData)
        return stream.send(kRmaChannel, front.payload.subspan(done), flush);
    RmaRange rest = front.head.range();
    rest.offset += done;
    rest.bytes = std::min<std::uint64_t>(rest.bytes - done, kChunk);
    return send_registered(stream, registry, rest);
}

Result<std::size_t> RmaOutbox::send_registered(SendLink& stream, RmaRegistry& registry,
                                               RmaRange range) {
    if (messages_.front().source != nullptr)
        return send_fetched_registered(stream, registry, range);
    Result<std::size_t> taken = std::size_t{0};
    const auto send = [&](Bytes bytes) { taken = stream.send(kRmaChannel, bytes, Flush::kLater); };
    if (outcome_ == RmaOutcome::kOk) outcome_ = outcome_of(registry.use(range, send));
    return outcome_ == RmaOutcome::kOk ? taken : send_zeros(stream, range.bytes);
}

Result<std::size_t> RmaOutbox::send_zeros(SendLink& stream, std::uint64_t bytes) {
    return stream.send(kRmaChannel,
                       Bytes(kZeros).first(std::min<std::size_t>(bytes, kZeros.size())),
                       Flush::kLater);
}

Result<std::size_t> RmaOutbox::send_fetched(SendLink& stream, GpuSource& source, Flush flush) {
    PCCL_ASSIGN_OR_RETURN(const Bytes come, source.peek());
    if (come.empty()) return std::size_t{0};
    PCCL_ASSIGN_OR_RETURN(const std::size_t taken, stream.send(kRmaChannel, come, flush));
    if (taken > 0) source.consume(taken);
    return taken;
}

Result<std::size_t> RmaOutbox::send_fetched_registered(SendLink& stream, RmaRegistry& registry,
                                                       const RmaRange& range) {
    if (outcome_ == RmaOutcome::kOk) {
        const auto taken = send_fetched(stream, *messages_.front().source, Flush::kLater);
        const Status here = registry.find_device(range).status();
        // An error of engines is the link's.
        if (here.is_ok()) return taken;
        outcome_ = outcome_of(here);
        if (taken.is_ok() && *taken > 0) return taken;
    }
    return send_zeros(stream, range.bytes);
}

}  // namespace pccl::transport
