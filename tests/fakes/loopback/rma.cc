// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/loopback/rma.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/transport/rma/copy_link.h"
#include "tests/fakes/loopback/links.h"

namespace pccl::transport::loopback {
namespace {

constexpr std::byte kRubbish{0xDD};
/// Stream number of the faults of copies, beside those of streams.
constexpr std::uint64_t kCopyFaults = 0x524D'4100;

enum class Half { kFirst, kSecond };

sys::ProcessPiece half_of(const sys::ProcessPiece& piece, Half half) {
    const std::size_t middle = piece.here.size() / 2;
    if (half == Half::kFirst) return {.there = piece.there, .here = piece.here.first(middle)};
    return {.there = piece.there + middle, .here = piece.here.subspan(middle)};
}

class LoopbackMemory final : public RmaPeerMemory {
   public:
    explicit LoopbackMemory(const MemoryIdentity& name) : identity(name) {}
    /// Its end shows only when a copy uses it.
    [[nodiscard]] bool is_open() const override { return true; }

    const MemoryIdentity identity;
};

/// Process at the other end of `pipe`, to which this one sends.
class LoopbackPeer final : public RmaPeer {
   public:
    LoopbackPeer(std::shared_ptr<Pipe> pipe, std::shared_ptr<Process> self)
        : pipe_(std::move(pipe)),
          self_(std::move(self)),
          faults_(pipe_->args().faults, kCopyFaults + pipe_->args().ordinal) {}

    Result<std::shared_ptr<RmaPeerMemory>> open(const abi::MemoryDescriptor& memory) override {
        return std::shared_ptr<RmaPeerMemory>(std::make_shared<LoopbackMemory>(
            MemoryIdentity{.id = memory.id, .nonce = memory.nonce}));
    }
    RmaCopied copy(RmaPeerMemory& memory, const RmaCopy& wanted) override {
        const TimePoint now = pipe_->args().clock->now();
        if (!due_) due_ = now + faults_.delay();
        if (now < *due_) return {.link = {}, .pieces = {}, .later = true};
        due_.reset();
        return copy_now(static_cast<LoopbackMemory&>(memory).identity, wanted.op, wanted.pieces);
    }

   private:
    RmaCopied copy_now(const MemoryIdentity& registration, RmaOp op,
                       std::span<const sys::ProcessPiece> pieces) {
        if (const Status alive = self_->live(); !alive.is_ok())
            return {.link = alive, .pieces = {}};
        if (faults_.resets()) return {.link = break_link(), .pieces = {}};
        Status copied = copy_halves(registration, op, pieces, Half::kFirst);
        if (faults_.cuts()) return {.link = break_link(), .pieces = {}};
        if (faults_.gives_up()) give_up(registration);
        if (copied.is_ok()) copied = copy_halves(registration, op, pieces, Half::kSecond);
        // The rule: moved bytes count only if the registration and its owner are still there.
        if (copied.is_ok()) copied = use(registration, {}, [](MutableBytes) {});
        return {.link = owner() != nullptr ? Status::ok() : lost(), .pieces = copied};
    }

    /// Copies one half of each piece.
    Status copy_halves(const MemoryIdentity& registration, RmaOp op,
                       std::span<const sys::ProcessPiece> pieces, Half half) {
        for (const sys::ProcessPiece& piece : pieces)
            PCCL_TRY(copy_piece(registration, op, half_of(piece, half)));
        return Status::ok();
    }

    Status copy_piece(const MemoryIdentity& registration, RmaOp op,
                      const sys::ProcessPiece& piece) {
        return use(registration, piece, [&](MutableBytes there) {
            if (op == RmaOp::kRead)
                std::ranges::copy(there, piece.here.begin());
            else
                std::ranges::copy(piece.here, there.begin());
        });
    }

    Status use(const MemoryIdentity& registration, const sys::ProcessPiece& piece,
               const std::function<void(MutableBytes)>& use) {
        const auto memory = owner();
        if (memory == nullptr) return lost();
        const RmaExtent extent{.offset = piece.there, .bytes = piece.here.size()};
        return memory->use({.registration = registration, .blocks = extent}, [&](MutableBytes all) {
            use(all.subspan(extent.offset, extent.bytes));
        });
    }

    void give_up(const MemoryIdentity& registration) {
        if (const auto memory = owner()) std::ranges::fill(memory->end(registration), kRubbish);
    }

    [[nodiscard]] std::shared_ptr<RmaRegistry> owner() {
        return pipe_->memory_of(Pipe::End::kReceiver);
    }
    Status break_link() {
        pipe_->leave(Pipe::End::kSender);
        pipe_->leave(Pipe::End::kReceiver);
        return lost();
    }
    [[nodiscard]] Status lost() const {
        const Rank rank = pipe_->args().request.destination;
        return Status::peer_lost(rank, concat("rank ", rank, " is gone from a loopback fabric"));
    }

    const std::shared_ptr<Pipe> pipe_;
    const std::shared_ptr<Process> self_;
    FaultDice faults_;
    std::optional<TimePoint> due_;  // of the requested copy
};

}  // namespace

Result<std::unique_ptr<RmaLink>> LoopbackRma::connect(RmaStreams streams) {
    if (streams.out->kind() != TransportKind::kLoopback ||
        streams.in->kind() != TransportKind::kLoopback)
        return Status::invalid_argument("a link of a loopback fabric takes streams of one");
    const auto pipe = static_cast<const LoopbackSendLink&>(*streams.out).pipe();
    return std::unique_ptr<RmaLink>(std::make_unique<RmaCopyLink>(
        std::move(streams), std::make_unique<LoopbackPeer>(pipe, process_)));
}

}  // namespace pccl::transport::loopback
