// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/interruptible.h"

#include "csrc/base/fork.h"
#include "csrc/base/interruptible.h"

namespace pccl::device {

Result<std::shared_ptr<DeviceGroup>> create_interruptibly(
    const DeviceGroupOptions& options, const std::function<Status()>& interrupted) {
    PCCL_ASSIGN_OR_RETURN(
        auto group,
        run_interruptibly("pccl-gpu-meet", interrupted, [&](const Cancellation& cancellation) {
            return DeviceGroup::create(options, &cancellation);
        }));
    PCCL_TRY(group->use_device());
    return std::shared_ptr<DeviceGroup>(group.release(), LeaveToParent());
}

}  // namespace pccl::device
