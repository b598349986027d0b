// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/gpu_report.h"

#include <bit>
#include <cstddef>

#include "csrc/base/config.h"
#include "csrc/base/ids.h"
#include "csrc/base/scope_exit.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/cuda/on_device.h"
#include "csrc/sys/sysfs/sysfs.h"
#include "csrc/sys/verbs/gpu_direct.h"
#include "csrc/transport/verbs/gpu_registrar.h"

namespace pccl::transport::verbs {
namespace {

constexpr std::size_t kTriedBytes = 64 * kKiB;

/// Returns the first way of the settings that `check` accepts, with the reasons against those
/// before it.
std::string first_way(const std::function<Status(GpuWay)>& check) {
    const std::string& setting = process_config().rdma.gpu;
    const auto ways = parse_gpu_ways(setting);
    std::string reasons = setting == "auto" ? "" : concat("PCCL_IB_GPU=", setting);
    for (const GpuWay way : ways.is_ok() ? *ways : std::vector<GpuWay>()) {
        const Status status = check(way);
        if (status.is_ok())
            return concat("by ", to_string(way),
                          reasons.empty() ? std::string() : concat(" (", reasons, ")"));
        reasons += concat(reasons.empty() ? "" : "; ", to_string(way), ": ", status.message());
    }
    return concat("through pinned memory (", reasons, ")");
}

Status check_kernel(const std::string& device, GpuWay way) {
    if (way == GpuWay::kPeermem)
        return sys::Sysfs().has_peer_memory()
                   ? Status::ok()
                   : Status::unsupported("the module nvidia_peermem is not loaded");
    PCCL_ASSIGN_OR_RETURN(const bool takes, sys::verbs::takes_dmabuf(device));
    if (takes) return Status::ok();
    return Status::unsupported(concat("the driver of ", device, " registers no dma-bufs"));
}

}  // namespace

std::string describe_gpu_access(const std::string& device) {
    return first_way([&](GpuWay way) { return check_kernel(device, way); });
}

std::string try_gpu_access(Adapter& adapter) {
    constexpr int kFirst = 0;
    const auto driver = sys::cuda::process_driver();
    if (!driver.is_ok())
        return concat(describe_gpu_access(adapter.name()),
                      "; it was not tried: ", driver.status().message());
    const sys::cuda::OnDevice on(**driver, kFirst);
    const auto base = on.status().is_ok() ? (*driver)->allocate(kFirst, kTriedBytes)
                                          : Result<sys::cuda::DeviceAddress>(on.status());
    if (!base.is_ok())
        return concat(describe_gpu_access(adapter.name()),
                      "; it was not tried: ", base.status().message());
    const ScopeExit release([&] { static_cast<void>((*driver)->deallocate(*base)); });
    const Memory memory{.data = std::bit_cast<std::byte*>(*base),
                        .bytes = kTriedBytes,
                        .kind = abi::MemoryKind::kGpu,
                        .device = kFirst};
    return concat(
        first_way([&](GpuWay way) { return register_gpu_memory(adapter, way, memory).status(); }),
        "; this was tried with memory of GPU ", kFirst);
}

}  // namespace pccl::transport::verbs
