// Whether schedules may go by wide lines: as the GPUs of a group find when they meet.
#include <atomic>
#include <chrono>

#include "csrc/device/device_group.h"
#include "csrc/device/nvlinks.h"

namespace pccl::device {
namespace {

/// Of GPUs whose stores of 128 bytes may travel whole.
constexpr int kOldestWithLines = 70;

}  // namespace

Result<abi::LineTrial> DeviceGroup::try_lines(Deadline deadline) {
    if (options_.size == 1 || gpus_.architecture < kOldestWithLines) return abi::LineTrial::kNone;
    PCCL_ASSIGN_OR_RETURN(const sys::cuda::Stream stream, driver_.create_stream(options_.device));
    const Status launched = launch_trial(stream);
    // Without kernels, or a GPU that they run on, nothing goes by lines.
    const bool can_try = launched.code() != StatusCode::kUnsupported && options_.driver == nullptr;
    Result<abi::LineTrial> outcome = abi::LineTrial::kNone;
    if (launched.is_ok())
        outcome = await_trial(deadline);
    else if (can_try)
        outcome = launched;
    if (!outcome.is_ok()) stop_kernels();
    PCCL_TRY(driver_.wait(stream));
    PCCL_TRY(driver_.destroy_stream(stream));
    return outcome;
}

Status DeviceGroup::launch_trial(kernels::Stream stream) {
    const bool is_expected = options_.driver != nullptr || has_nvlinks(driver_, options_.device);
    const auto lock = enter();
    PCCL_ASSIGN_OR_RETURN(const auto turn,
                          window_->begin({.group = this, .stream = stream, .blocks = 1}));
    return kernels::launch_line_trial({.team = team_, .is_expected = is_expected}, stream);
}

Result<abi::LineTrial> DeviceGroup::await_trial(Deadline deadline) const {
    constexpr std::chrono::microseconds kPause{20};
    const std::atomic_ref said(control_->line_trial);
    while (!deadline.passed()) {
        if (const std::uint32_t outcome = said.load(std::memory_order_acquire); outcome != 0)
            return static_cast<abi::LineTrial>(outcome);
        PCCL_TRY(why_over());
        system_clock().sleep_for(kPause);
    }
    return Status::timeout("not all GPUs have come to the trial of lines");
}

}  // namespace pccl::device
