#include "csrc/transport/rma/gpu_passage.h"

#include <algorithm>
#include <utility>

namespace pccl::transport {
namespace {

constexpr GpuStages::Extent kStages{.bytes = 512 * kKiB, .most = 4};

}  // namespace

Result<std::unique_ptr<GpuStage>> GpuPassage::stage(int device) {
    if (stages_ == nullptr) {
        PCCL_ASSIGN_OR_RETURN(sys::cuda::Driver* const driver, gpu_driver());
        stages_ = GpuStages::create(*driver, device, kStages);
    }
    return stages_->take();
}

Result<std::shared_ptr<GpuMoment>> GpuPassage::copy(int device, const sys::cuda::Copy& copy) {
    PCCL_ASSIGN_OR_RETURN(GpuStream* const stream, streams_.of(device));
    return stream->copy({&copy, 1});
}

GpuSource::~GpuSource() {
    for (const Part& part : parts_) part.come->await();
}

Status GpuSource::fetch() {
    while (fetched_ < transfer_.bytes) {
        PCCL_ASSIGN_OR_RETURN(auto stage, transfer_.passage.stage(transfer_.device));
        if (stage == nullptr) break;
        const auto bytes = static_cast<std::size_t>(
            std::min<std::uint64_t>(stage->bytes().size(), transfer_.bytes - fetched_));
        const MutableBytes into = stage->bytes().first(bytes);
        PCCL_ASSIGN_OR_RETURN(auto come, transfer_.step(fetched_, into));
        parts_.push_back({.stage = std::move(stage), .bytes = into, .come = std::move(come)});
        fetched_ += bytes;
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

GpuSink::~GpuSink() {
    for (const Part& part : parts_) part.gone->await();
}

Result<MutableBytes> GpuSink::room() {
    if (filled_ == transfer_.bytes) return MutableBytes();
    if (stage_ == nullptr) {
        PCCL_TRY(has_landed().status());  // gives back what has
        PCCL_ASSIGN_OR_RETURN(stage_, transfer_.passage.stage(transfer_.device));
        if (stage_ == nullptr) return MutableBytes();
    }
    const MutableBytes rest = stage_->bytes().subspan(filled_ - begun_);
    return rest.first(std::min<std::uint64_t>(rest.size(), transfer_.bytes - filled_));
}

Status GpuSink::fill(std::size_t count) {
    filled_ += count;
    const std::size_t in_stage = filled_ - begun_;
    if (stage_ == nullptr || (in_stage < stage_->bytes().size() && filled_ < transfer_.bytes))
        return Status::ok();
    PCCL_ASSIGN_OR_RETURN(auto gone, transfer_.step(begun_, stage_->bytes().first(in_stage)));
    parts_.push_back({.stage = std::move(stage_), .gone = std::move(gone)});
    begun_ = filled_;
    return Status::ok();
}

Result<bool> GpuSink::has_landed() {
    while (!parts_.empty()) {
        PCCL_ASSIGN_OR_RETURN(const bool gone, parts_.front().gone->has_come());
        if (!gone) return false;
        parts_.pop_front();
    }
    return begun_ == transfer_.bytes;
}

}  // namespace pccl::transport
