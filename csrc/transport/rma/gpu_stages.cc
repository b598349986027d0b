// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/gpu_stages.h"

#include <utility>

#include "csrc/sys/cuda/on_device.h"

namespace pccl::transport {

using sys::cuda::OnDevice;

GpuStage::~GpuStage() { stages_->give_back(bytes_); }

std::shared_ptr<GpuStages> GpuStages::create(sys::cuda::Driver& driver, int device,
                                             const StageExtent& extent) {
    return std::shared_ptr<GpuStages>(new GpuStages(driver, device, extent));
}

GpuStages::~GpuStages() {
    const OnDevice on(driver_, device_);
    if (!on.status().is_ok()) return;
    for (const auto& each : free_) static_cast<void>(driver_.free_host(each.data()));
}

Result<std::unique_ptr<GpuStage>> GpuStages::take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
        if (allocated_ == extent_.most) return std::unique_ptr<GpuStage>();
        const OnDevice on(driver_, device_);
        PCCL_TRY(on.status());
        PCCL_ASSIGN_OR_RETURN(void* const memory, driver_.allocate_host(extent_.bytes));
        free_.emplace_back(static_cast<std::byte*>(memory), extent_.bytes);
        ++allocated_;
    }
    auto stage = std::make_unique<GpuStage>(shared_from_this(), free_.back());
    free_.pop_back();
    return stage;
}

void GpuStages::give_back(std::span<std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    free_.push_back(bytes);
}

}  // namespace pccl::transport
