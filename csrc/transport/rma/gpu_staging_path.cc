// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/gpu_staging_path.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/transport/rma/gpu_memory.h"

namespace pccl::transport {
namespace {

constexpr GpuStages::StageExtent kStages{.bytes = 512 * kKiB, .most = 4};
// Blocks of one call: some hundred microseconds of a GPU for the smallest.
constexpr std::size_t kMostBlocks = 4096;

/// Returns copies of the next bytes of the blocks of `memory`, as many as `stage` has.
std::vector<sys::cuda::Copy> copies_of(const RmaBlocks& blocks, RmaBlocks::BlockPosition place,
                                       const std::byte* memory, MutableBytes stage) {
    std::vector<sys::cuda::Copy> copies;
    while (!stage.empty()) {
        const RmaExtent block = blocks.rest(place);
        const auto bytes =
            static_cast<std::size_t>(std::min<std::uint64_t>(block.bytes, stage.size()));
        copies.push_back({.to = device_address(memory + block.offset),
                          .from = device_address(stage.data()),
                          .bytes = bytes});
        blocks.advance(place, bytes);
        stage = stage.subspan(bytes);
    }
    return copies;
}

}  // namespace

Result<std::unique_ptr<GpuStage>> GpuStagingPath::stage(int device) {
    if (stages_ == nullptr) {
        PCCL_ASSIGN_OR_RETURN(sys::cuda::Driver* const driver, gpu_driver());
        stages_ = GpuStages::create(*driver, device, kStages);
    }
    return stages_->take();
}

Result<std::shared_ptr<GpuEvent>> GpuStagingPath::copy(int device,
                                                       std::span<const sys::cuda::Copy> copies) {
    PCCL_ASSIGN_OR_RETURN(GpuStream* const stream, streams_.of(device));
    return stream->copy(copies);
}

std::size_t GpuTransfer::next_part(std::size_t room) const {
    return static_cast<std::size_t>(
        blocks_.bytes_of_next(place_, kMostBlocks, std::min<std::uint64_t>(room, left_)));
}

Result<std::shared_ptr<GpuEvent>> GpuTransfer::begin(GpuDirection direction, MutableBytes stage) {
    const auto begun = lend_([&](const std::byte* memory) {
        auto copies = copies_of(blocks_, place_, memory, stage);
        if (direction == GpuDirection::kFromGpu)
            for (sys::cuda::Copy& copy : copies) std::swap(copy.to, copy.from);
        return staging_.copy(device_, copies);
    });
    blocks_.advance(place_, stage.size());
    left_ -= stage.size();
    return begun;
}

GpuSource::~GpuSource() {
    for (FetchedPart& part : parts_) part.come->release_after(std::move(part.stage));
}

Status GpuSource::fetch() {
    while (transfer_.left() > 0) {
        PCCL_ASSIGN_OR_RETURN(auto stage, transfer_.stage());
        if (stage == nullptr) break;
        const MutableBytes into = stage->bytes().first(transfer_.next_part(stage->bytes().size()));
        PCCL_ASSIGN_OR_RETURN(auto come, transfer_.begin(GpuDirection::kFromGpu, into));
        parts_.push_back({.stage = std::move(stage), .bytes = into, .come = std::move(come)});
    }
    return Status::ok();
}

Result<Bytes> GpuSource::peek() {
    PCCL_TRY(fetch());
    if (parts_.empty()) return Bytes();
    PCCL_ASSIGN_OR_RETURN(const bool come, parts_.front().come->has_come());
    is_waiting_ = !come;
    return come ? parts_.front().bytes : Bytes();
}

void GpuSource::consume(std::size_t count) {
    Bytes& rest = parts_.front().bytes;
    rest = rest.subspan(count);
    if (rest.empty()) parts_.pop_front();
}

GpuReceiver::~GpuReceiver() {
    for (LandingPart& part : parts_) part.gone->release_after(std::move(part.stage));
}

Result<MutableBytes> GpuReceiver::room() {
    if (stage_ == nullptr) {
        PCCL_TRY(give_back_landed().status());
        if (transfer_.left() == 0) return MutableBytes();
        PCCL_ASSIGN_OR_RETURN(stage_, transfer_.stage());
        if (stage_ == nullptr) return MutableBytes();
        part_ = transfer_.next_part(stage_->bytes().size());
        filled_ = 0;
    }
    return stage_->bytes().first(part_).subspan(filled_);
}

Status GpuReceiver::fill(std::size_t count) {
    filled_ += count;
    if (stage_ == nullptr || filled_ < part_) return Status::ok();
    PCCL_ASSIGN_OR_RETURN(auto gone,
                          transfer_.begin(GpuDirection::kToGpu, stage_->bytes().first(part_)));
    parts_.push_back({.stage = std::move(stage_), .gone = std::move(gone)});
    return Status::ok();
}

Result<bool> GpuReceiver::has_landed() {
    PCCL_ASSIGN_OR_RETURN(const bool landed, give_back_landed());
    return landed && stage_ == nullptr && transfer_.left() == 0;
}

Result<bool> GpuReceiver::give_back_landed() {
    for (; !parts_.empty(); parts_.pop_front()) {
        PCCL_ASSIGN_OR_RETURN(const bool gone, parts_.front().gone->has_come());
        if (!gone) return false;
    }
    return true;
}

}  // namespace pccl::transport
