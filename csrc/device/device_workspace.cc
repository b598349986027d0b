#include "csrc/device/device_workspace.h"

#include <utility>

#include "csrc/base/fork.h"
#include "csrc/base/interruptible.h"
#include "csrc/base/text.h"

namespace pccl::device {
namespace {

Status check(const DeviceWorkspaceOptions& options) {
    if (options.size < 1 || options.size > abi::kMostDevices)
        return Status::unsupported(concat("GPU memory for ", options.size,
                                          " ranks of one host; 1 to ", abi::kMostDevices, " work"));
    if (options.rank < 0 || options.rank >= options.size)
        return Status::invalid_argument(
            concat("rank ", options.rank, " is not in a group of ", options.size));
    if (options.bytes == 0) return Status::invalid_argument("a workspace needs at least a byte");
    return Status::ok();
}

}  // namespace

Result<std::unique_ptr<DeviceWorkspace>> DeviceWorkspace::create(
    const DeviceWorkspaceOptions& options, const Cancellation* cancellation) {
    PCCL_TRY(check(options));
    DeviceMeeting meeting({.store = options.store,
                           .rank = options.rank,
                           .size = options.size,
                           .timeout = options.timeout,
                           .cancellation = cancellation});
    auto made = make(options, meeting);
    if (!made.is_ok() && meeting.is_cancelled()) return meeting.call_off();
    return made;
}

Result<std::unique_ptr<DeviceWorkspace>> DeviceWorkspace::make(
    const DeviceWorkspaceOptions& options, DeviceMeeting& meeting) {
    const auto driver = sys::cuda::driver_on(options.device, options.driver);
    PCCL_TRY(meeting.agree_on_host(driver.status()));
    std::unique_ptr<DeviceWorkspace> workspace(new DeviceWorkspace(options));
    const auto leave = [&workspace] { workspace.reset(); };
    PCCL_TRY(meeting.agree(workspace->meet(meeting, **driver), leave));
    return workspace;
}

Status DeviceWorkspace::meet(const DeviceMeeting& meeting, sys::cuda::Driver& driver) {
    PCCL_ASSIGN_OR_RETURN(const auto sockets, meeting.connect());
    PCCL_ASSIGN_OR_RETURN(heap_, transport::nvlink::SymmetricHeap::create(
                                     {.driver = driver, .device = device_, .bytes = bytes_},
                                     *sockets, meeting.deadline()));
    return Status::ok();
}

Result<sys::cuda::DeviceAddress> DeviceWorkspace::address(Rank rank) const {
    if (rank < 0 || rank >= size_)
        return Status::invalid_argument(concat("there is no rank ", rank, " of ", size_));
    return heap_->bases()[static_cast<std::size_t>(rank)];
}

Result<int> count_gpus() {
    PCCL_ASSIGN_OR_RETURN(sys::cuda::Driver* const driver, sys::cuda::process_driver());
    PCCL_ASSIGN_OR_RETURN(const auto ids, driver->bus_ids());
    return static_cast<int>(ids.size());
}

Result<std::shared_ptr<DeviceWorkspace>> create_interruptibly(
    const DeviceWorkspaceOptions& options, const std::function<Status()>& interrupted) {
    PCCL_ASSIGN_OR_RETURN(
        auto workspace,
        run_interruptibly("pccl-gpu-meet", interrupted, [&](const Cancellation& cancellation) {
            return DeviceWorkspace::create(options, &cancellation);
        }));
    return std::shared_ptr<DeviceWorkspace>(workspace.release(), LeaveToParent());
}

}  // namespace pccl::device
