// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/gpu_registrar.h"

#include <utility>

#include "csrc/base/log/log.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/cuda/on_device.h"
#include "csrc/sys/sysfs/sysfs.h"

namespace pccl::transport::verbs {
namespace {

Result<MemoryRegion> register_dmabuf(Adapter& adapter, const Memory& memory) {
    PCCL_ASSIGN_OR_RETURN(sys::cuda::Driver* const driver, gpu_driver());
    const sys::cuda::OnDevice on(*driver, memory.device);
    PCCL_TRY(on.status());
    // The region keeps the pages: the file may be closed.
    PCCL_ASSIGN_OR_RETURN(
        const sys::cuda::DmaBuf exported,
        driver->export_range(memory.device, device_address(memory.data), memory.bytes));
    return adapter.add_dmabuf({memory.data, memory.bytes}, exported.file.get(), exported.offset,
                              Access::kPeer);
}

Result<MemoryRegion> register_address(Adapter& adapter, const Memory& memory) {
    auto region = adapter.add({memory.data, memory.bytes}, Access::kPeer);
    if (region.is_ok() || sys::Sysfs().has_peer_memory()) return region;
    return region.status().with_message(
        concat(region.status().message(), "; the module nvidia_peermem is not loaded"));
}

}  // namespace

Result<MemoryRegion> register_gpu_memory(Adapter& adapter, GpuWay way, const Memory& memory) {
    return way == GpuWay::kDmaBuf ? register_dmabuf(adapter, memory)
                                  : register_address(adapter, memory);
}

Result<MemoryRegion> GpuRegistrar::add(Adapter& adapter, const Memory& memory) {
    std::string reasons;
    for (const GpuWay way : ways_) {
        auto region = register_gpu_memory(adapter, way, memory);
        show_once(adapter, way, region.status());
        if (region.is_ok()) return region;
        reasons +=
            concat(reasons.empty() ? "" : "; ", to_string(way), ": ", region.status().message());
    }
    return Status::unsupported(
        ways_.empty() ? "PCCL_IB_GPU=off keeps RDMA devices from memory of GPUs"
                      : concat("RDMA does not reach memory of GPU ", memory.device, ": ", reasons));
}

void GpuRegistrar::show_once(const Adapter& adapter, GpuWay way, const Status& status) {
    {
        const std::lock_guard lock(mutex_);
        if (!shown_.insert(concat(adapter.name(), to_string(way), status.is_ok())).second) return;
    }
    if (status.is_ok())
        log(LogLevel::kInfo, "RDMA device ", adapter.name(), " reaches memory of GPUs by ",
            to_string(way));
    else
        log(LogLevel::kWarning, "RDMA device ", adapter.name(),
            " does not reach memory of GPUs by ", to_string(way), ": ", status.message());
}

}  // namespace pccl::transport::verbs
