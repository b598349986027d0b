// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/device_workspace.h"

#include <utility>

#include "csrc/base/fork.h"
#include "csrc/base/text/text.h"
#include "csrc/base/threads/interruptible.h"

namespace pccl::device {

Result<std::unique_ptr<DeviceWorkspace>> DeviceWorkspace::create(
    const DeviceWorkspaceOptions& options, const Cancellation* cancellation) {
    if (options.bytes == 0) return Status::invalid_argument("a workspace needs at least a byte");
    return make_together(
        {.store = options.store,
         .rank = options.rank,
         .size = options.size,
         .timeout = options.timeout,
         .cancellation = cancellation},
        [&] { return sys::cuda::driver_on(options.device, options.driver); },
        [&](sys::cuda::Driver& driver) {
            return std::unique_ptr<DeviceWorkspace>(new DeviceWorkspace(options, driver));
        },
        &DeviceWorkspace::meet);
}

Status DeviceWorkspace::meet(const DeviceRendezvous& rendezvous) {
    PCCL_ASSIGN_OR_RETURN(sockets_, rendezvous.connect());
    PCCL_ASSIGN_OR_RETURN(heap_, transport::nvlink::SymmetricHeap::create(
                                     {.driver = driver_, .device = device_, .bytes = bytes_},
                                     *sockets_, rendezvous.deadline()));
    sockets_.reset();
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
