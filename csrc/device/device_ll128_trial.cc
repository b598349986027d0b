// SPDX-License-Identifier: Apache-2.0

// Trial whether schedules can use LL128; a group runs it when it is made.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "csrc/device/device_group.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/sys/nvml/nvml.h"

namespace pccl::device {
namespace {

std::vector<sys::NvmlGpu> find_gpus() {
    const auto nvml = sys::open_nvml();
    if (!nvml.is_ok()) return {};
    auto gpus = (*nvml)->gpus();
    return gpus.is_ok() ? *std::move(gpus) : std::vector<sys::NvmlGpu>{};
}

/// Returns whether GPU `device` of this process has NVLinks, as NVML reports once per device; false
/// where that is unknown.
bool has_nvlinks(sys::cuda::Driver& driver, int device) {
    static const std::vector<sys::NvmlGpu> gpus = find_gpus();
    const auto ids = driver.bus_ids();
    if (!ids.is_ok()) return false;
    const std::string& own = ids->at(static_cast<std::size_t>(device));
    return std::ranges::any_of(
        gpus, [&](const sys::NvmlGpu& gpu) { return gpu.bus_id == own && !gpu.links.empty(); });
}

/// Compute capability of the oldest GPUs whose stores of 128 bytes may travel whole.
constexpr int kOldestWithLL128 = 70;

}  // namespace

Result<abi::LL128Trial> DeviceGroupImpl::try_ll128(Deadline deadline) {
    if (options_.size == 1 || gpus_.architecture < kOldestWithLL128) return abi::LL128Trial::kNone;
    PCCL_ASSIGN_OR_RETURN(const sys::cuda::Stream stream, driver_.create_stream(options_.device));
    const Status launched = launch_trial(stream);
    // Without kernels, or without a GPU for them, no message uses LL128.
    const bool can_try = launched.code() != StatusCode::kUnsupported && options_.driver == nullptr;
    Result<abi::LL128Trial> outcome = abi::LL128Trial::kNone;
    if (launched.is_ok())
        outcome = await_trial(deadline);
    else if (can_try)
        outcome = launched;
    if (!outcome.is_ok()) stop_kernels();
    PCCL_TRY(driver_.wait(stream));
    PCCL_TRY(driver_.destroy_stream(stream));
    return outcome;
}

Status DeviceGroupImpl::launch_trial(kernels::Stream stream) {
    // PCIe gives no line of 128 bytes as a whole, whatever a trial sees.
    const bool has_links =
        gpus_.path == kernels::GpuPath::kPeer && has_nvlinks(driver_, options_.device);
    const bool is_expected = options_.driver != nullptr || has_links;
    const auto lock = enter();
    PCCL_ASSIGN_OR_RETURN(const auto permit,
                          window_->begin({.group = this, .stream = stream, .blocks = 1}));
    return kernels::launch_ll128_trial({.team = team_, .is_expected = is_expected}, stream);
}

Result<abi::LL128Trial> DeviceGroupImpl::await_trial(Deadline deadline) const {
    constexpr std::chrono::microseconds kPause{20};
    const std::atomic_ref reported(control_->ll128_trial);
    while (!deadline.passed()) {
        if (const std::uint32_t outcome = reported.load(std::memory_order_acquire); outcome != 0)
            return static_cast<abi::LL128Trial>(outcome);
        PCCL_TRY(why_over());
        system_clock().sleep_for(kPause);
    }
    return Status::timeout("not all GPUs have joined the trial of LL128");
}

}  // namespace pccl::device
