// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/shm/gpu_memories.h"

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/cuda/on_device.h"
#include "csrc/transport/rma/gpu_memory.h"

namespace pccl::transport::shm {

using sys::cuda::OnDevice;

namespace {

constexpr GpuStages::StageExtent kStages{.bytes = 2 * kMiB, .most = 8};

}  // namespace

Result<std::optional<GpuKey>> key_of_gpu(const Memory& memory) {
    PCCL_ASSIGN_OR_RETURN(const GpuMemory found, find_gpu_memory(memory));
    const OnDevice on(found.driver, memory.device);
    PCCL_TRY(on.status());
    const auto handle = found.driver.export_allocation(found.allocation.base);
    if (handle.status().code() == StatusCode::kUnsupported) return std::optional<GpuKey>();
    PCCL_TRY(handle.status());
    GpuKey key{.allocation = *handle,
               .offset = device_address(memory.data) - found.allocation.base};
    if (memory.bytes > found.allocation.bytes - key.offset)
        return Status::invalid_argument(concat(memory.bytes, " bytes at ", key.offset,
                                               " of an allocation of ", found.allocation.bytes));
    PCCL_ASSIGN_OR_RETURN(key.gpu, found.driver.gpu_id(memory.device));
    return std::optional(key);
}

class GpuMemories::Opened {
   public:
    Opened(sys::cuda::Driver& driver, int device, sys::cuda::DeviceAddress at)
        : base(at), driver_(driver), device_(device) {}
    ~Opened() {
        const OnDevice on(driver_, device_);
        if (on.status().is_ok()) static_cast<void>(driver_.close_allocation(base));
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

    const sys::cuda::DeviceAddress base;

   private:
    sys::cuda::Driver& driver_;
    const int device_;
};

Result<int> GpuMemories::home_of(const GpuKey& key) const {
    PCCL_ASSIGN_OR_RETURN(sys::cuda::Driver* const driver, gpu_driver());
    PCCL_ASSIGN_OR_RETURN(const auto all, driver->bus_ids());
    for (int device = 0; device < static_cast<int>(all.size()); ++device) {
        PCCL_ASSIGN_OR_RETURN(const auto id, driver->gpu_id(device));
        if (id == key.gpu) return device;
    }
    if (all.empty()) return Status::unsupported("this process has no visible GPU");
    return 0;
}

Result<GpuView> GpuMemories::open(const GpuKey& key, int device) {
    PCCL_ASSIGN_OR_RETURN(sys::cuda::Driver* const driver, gpu_driver());
    const std::lock_guard lock(mutex_);
    std::erase_if(opened_, [](const auto& each) { return each.second.expired(); });
    std::weak_ptr<Opened>& known = opened_[{key.allocation, device}];
    auto opened = known.lock();
    if (opened == nullptr) {
        const OnDevice on(*driver, device);
        PCCL_TRY(on.status());
        const auto base = driver->open_allocation(key.allocation);
        if (!base.is_ok())
            return Status::unsupported(concat("GPU memory of the peer does not open on GPU ",
                                              device, ": ", base.status().message()));
        opened = std::make_shared<Opened>(*driver, device, *base);
        known = opened;
    }
    return GpuView{.address = opened->base + key.offset, .device = device, .opened = opened};
}

Status GpuMemories::reach(int device, int other) {
    PCCL_ASSIGN_OR_RETURN(sys::cuda::Driver* const driver, gpu_driver());
    return driver->reach(device, other);
}

Result<std::shared_ptr<GpuStages>> GpuMemories::stages(int device) {
    PCCL_ASSIGN_OR_RETURN(sys::cuda::Driver* const driver, gpu_driver());
    const std::lock_guard lock(mutex_);
    if (stages_ == nullptr) stages_ = GpuStages::create(*driver, device, kStages);
    return stages_;
}

}  // namespace pccl::transport::shm
