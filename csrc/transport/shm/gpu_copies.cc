// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/shm/gpu_copies.h"

#include <cstring>
#include <utility>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/transport/rma/gpu_memory.h"

namespace pccl::transport::shm {
namespace {

using sys::ProcessPiece;
using sys::cuda::Copy;

// Enough bytes for copy engines to run at full speed while this process polls now and then.
constexpr std::size_t kMostDirect = 64 * kMiB;
constexpr std::size_t kMostStaged = 2 * kMiB;

class GpuInFlightCopy final : public RmaInFlightCopy {
   public:
    GpuInFlightCopy(std::shared_ptr<GpuEvent> end, std::function<RmaCopied()> then)
        : end_(std::move(end)), then_(std::move(then)) {}
    ~GpuInFlightCopy() override {
        if (end_ == nullptr) return;
        // The function object owns the stage and the peer's memory.
        end_->release_after(std::make_shared<std::function<RmaCopied()>>(std::move(then_)));
    }
    GpuInFlightCopy(const GpuInFlightCopy&) = delete;
    GpuInFlightCopy& operator=(const GpuInFlightCopy&) = delete;

    RmaCopied finish() override {
        const auto come = end_->has_come();
        if (!come.is_ok()) return {.link = {}, .pieces = come.status()};
        if (!*come) return {.link = {}, .pieces = {}, .later = true};
        end_.reset();
        return then_();
    }

   private:
    std::shared_ptr<GpuEvent> end_;  // null once it has completed
    std::function<RmaCopied()> then_;
};

/// Announced writer: while it lives, the owner of the memory waits with the end of its
/// registration.
class Presence {
   public:
    explicit Presence(std::shared_ptr<const PeerMemory> memory)
        : memory_(std::move(memory)), is_in_(memory_->enter()) {}
    ~Presence() { static_cast<void>(leave()); }
    Presence(const Presence&) = delete;
    Presence& operator=(const Presence&) = delete;

    [[nodiscard]] bool is_in() const { return is_in_; }
    /// Ends the access; returns whether the registration was still there.
    bool leave() { return std::exchange(is_in_, false) && memory_->leave(); }

   private:
    const std::shared_ptr<const PeerMemory> memory_;
    bool is_in_;
};

std::unique_ptr<RmaInFlightCopy> over(RmaCopied copied) {
    return std::make_unique<RmaEnded>(std::move(copied));
}

/// Returns the pieces at their places in a stage, one after the other.
std::vector<ProcessPiece> in_stage(std::span<const ProcessPiece> pieces, const GpuStage& stage) {
    std::vector<ProcessPiece> staged;
    std::span<std::byte> rest = stage.bytes();
    for (const ProcessPiece& piece : pieces) {
        staged.push_back({.there = piece.there, .here = rest.first(piece.here.size())});
        rest = rest.subspan(piece.here.size());
    }
    return staged;
}

/// Returns copies from each of `from` to its counterpart.
std::vector<Copy> copies_here(std::span<const ProcessPiece> from,
                              std::span<const ProcessPiece> to) {
    std::vector<Copy> copies;
    for (std::size_t i = 0; i < from.size(); ++i)
        if (!from[i].here.empty())
            copies.push_back({.to = device_address(to[i].here.data()),
                              .from = device_address(from[i].here.data()),
                              .bytes = from[i].here.size()});
    return copies;
}

std::vector<Copy> copies_there(RmaOp op, std::span<const ProcessPiece> pieces,
                               const GpuView& view) {
    std::vector<Copy> copies;
    copies.reserve(pieces.size());
    for (const ProcessPiece& piece : pieces) {
        if (piece.here.empty()) continue;
        Copy copy{.to = view.address + piece.there,
                  .from = device_address(piece.here.data()),
                  .bytes = piece.here.size()};
        if (op == RmaOp::kRead) std::swap(copy.to, copy.from);
        copies.push_back(copy);
    }
    return copies;
}

void copy_all(std::span<const ProcessPiece> from, std::span<const ProcessPiece> to) {
    for (std::size_t i = 0; i < from.size(); ++i)
        if (!from[i].here.empty())
            std::memcpy(to[i].here.data(), from[i].here.data(), from[i].here.size());
}

}  // namespace

std::size_t GpuCopies::most_in_flight(bool is_staged) {
    return is_staged ? kMostStaged : kMostDirect;
}

std::unique_ptr<RmaInFlightCopy> GpuCopies::begin(const std::shared_ptr<PeerMemory>& memory,
                                                  RmaOp op, const RmaPiecesHere& here) {
    const bool is_direct = memory->is_of_gpu() && here.memory->kind == abi::MemoryKind::kGpu;
    if (here.order != nullptr && (!is_direct || op != RmaOp::kRead))
        return over({.link = {}, .pieces = Status::unsupported("no order of streams is kept")});
    auto copy = is_direct ? begin_direct(memory, op, here) : begin_staged(memory, op, here);
    if (copy.is_ok()) return std::move(*copy);
    return over({.link = {}, .pieces = copy.status()});
}

GpuCopies::CopyResult GpuCopies::begin_direct(const PeerMemoryPtr& memory, RmaOp op,
                                              const RmaPiecesHere& here) {
    PCCL_ASSIGN_OR_RETURN(const GpuView view, memory->view_for(here.memory->device));
    const auto copies = copies_there(op, here.pieces, view);
    if (op == RmaOp::kWrite) return write(memory, copies, view.device, nullptr);
    const auto look = [this, memory] {
        return look_(*memory, PeerMemory::outcome(memory->is_open()));
    };
    return start_copies(copies, view.device, look, here.order);
}

GpuCopies::CopyResult GpuCopies::begin_staged(const PeerMemoryPtr& memory, RmaOp op,
                                              const RmaPiecesHere& here) {
    const int device = here.memory->kind == abi::MemoryKind::kGpu ? here.memory->device : 0;
    PCCL_ASSIGN_OR_RETURN(const auto stages, gpus_->stages(device));
    PCCL_ASSIGN_OR_RETURN(std::shared_ptr<GpuStage> stage, stages->take());
    if (stage == nullptr) return std::unique_ptr<RmaInFlightCopy>();
    if (memory->is_of_gpu())
        return op == RmaOp::kRead ? to_host(memory, here, stage)
                                  : from_host(memory, here, std::move(stage));
    return op == RmaOp::kRead ? to_gpu(memory, here, std::move(stage))
                              : from_gpu(memory, here, std::move(stage));
}

GpuCopies::CopyResult GpuCopies::to_host(const PeerMemoryPtr& memory, const RmaPiecesHere& here,
                                         const std::shared_ptr<GpuStage>& stage) {
    PCCL_ASSIGN_OR_RETURN(const GpuView view, memory->view_for(PeerMemory::kOwnDevice));
    const auto staged = in_stage(here.pieces, *stage);
    const std::vector<ProcessPiece> own(here.pieces.begin(), here.pieces.end());
    return start_copies(copies_there(RmaOp::kRead, staged, view), view.device, [=, this] {
        const Status status = PeerMemory::outcome(memory->is_open());
        if (status.is_ok()) copy_all(in_stage(own, *stage), own);
        return look_(*memory, status);
    });
}

GpuCopies::CopyResult GpuCopies::from_host(const PeerMemoryPtr& memory, const RmaPiecesHere& here,
                                           std::shared_ptr<GpuStage> stage) {
    PCCL_ASSIGN_OR_RETURN(const GpuView view, memory->view_for(PeerMemory::kOwnDevice));
    const auto staged = in_stage(here.pieces, *stage);
    copy_all(here.pieces, staged);
    const auto copies = copies_there(RmaOp::kWrite, staged, view);
    return write(memory, copies, view.device, std::move(stage));
}

GpuCopies::CopyResult GpuCopies::to_gpu(const PeerMemoryPtr& memory, const RmaPiecesHere& here,
                                        std::shared_ptr<GpuStage> stage) {
    const auto staged = in_stage(here.pieces, *stage);
    auto fetched = staged;
    RmaCopied copied = look_(*memory, memory->copy({.op = RmaOp::kRead, .pieces = fetched}));
    if (!copied.link.is_ok() || !copied.pieces.is_ok()) return over(copied);
    return start_copies(copies_here(staged, here.pieces), here.memory->device,
                        [copied, stage = std::move(stage)] { return copied; });
}

GpuCopies::CopyResult GpuCopies::from_gpu(const PeerMemoryPtr& memory, const RmaPiecesHere& here,
                                          std::shared_ptr<GpuStage> stage) {
    const auto staged = in_stage(here.pieces, *stage);
    return start_copies(copies_here(here.pieces, staged), here.memory->device,
                        [this, memory, staged, stage = std::move(stage)] {
                            auto pieces = staged;
                            return look_(*memory,
                                         memory->copy({.op = RmaOp::kWrite, .pieces = pieces}));
                        });
}

GpuCopies::CopyResult GpuCopies::write(const PeerMemoryPtr& memory, const Copies& copies,
                                       int device, std::shared_ptr<GpuStage> keeps) {
    const auto presence = std::make_shared<Presence>(memory);
    if (!presence->is_in()) return over(look_(*memory, PeerMemory::outcome(false)));
    return start_copies(copies, device, [this, memory, presence, keeps = std::move(keeps)] {
        return look_(*memory, PeerMemory::outcome(presence->leave()));
    });
}

GpuCopies::CopyResult GpuCopies::start_copies(const Copies& copies, int device,
                                              std::function<RmaCopied()> then,
                                              const GpuCallerStream* order) {
    auto& streams = order == nullptr ? streams_ : ordered_streams_;
    PCCL_ASSIGN_OR_RETURN(GpuStream* const stream, streams.of(device));
    PCCL_ASSIGN_OR_RETURN(auto end, order == nullptr ? stream->copy(copies)
                                                     : stream->copy_in_order_of(*order, copies));
    return std::unique_ptr<RmaInFlightCopy>(
        std::make_unique<GpuInFlightCopy>(std::move(end), std::move(then)));
}

}  // namespace pccl::transport::shm
