// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/nvlinks.h"

#include <algorithm>
#include <string>
#include <vector>

#include "csrc/sys/nvml/nvml.h"

namespace pccl::device {
namespace {

std::vector<sys::NvmlGpu> find_gpus() {
    const auto nvml = sys::open_nvml();
    if (!nvml.is_ok()) return {};
    auto gpus = (*nvml)->gpus();
    return gpus.is_ok() ? *std::move(gpus) : std::vector<sys::NvmlGpu>{};
}

}  // namespace

bool has_nvlinks(sys::cuda::Driver& driver, int device) {
    static const std::vector<sys::NvmlGpu> gpus = find_gpus();
    const auto ids = driver.bus_ids();
    if (!ids.is_ok()) return false;
    const std::string& own = ids->at(static_cast<std::size_t>(device));
    return std::ranges::any_of(
        gpus, [&](const sys::NvmlGpu& gpu) { return gpu.bus_id == own && !gpu.links.empty(); });
}

}  // namespace pccl::device
