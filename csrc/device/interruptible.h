// Groups of GPUs, for callers that may have to stop waiting for the others.
#pragma once

#include <functional>
#include <memory>

#include "csrc/device/device_group.h"

namespace pccl::device {

/// DeviceGroup::create() on a thread of its own, while this one asks `interrupted` ten times a
/// second. What that says, unless ok, is what this returns, and the other ranks need not wait. A
/// child of fork() may drop the group, and leaves it as it is: CUDA does not work there.
[[nodiscard]] PCCL_API Result<std::shared_ptr<DeviceGroup>> create_interruptibly(
    const DeviceGroupOptions& options, const std::function<Status()>& interrupted);

}  // namespace pccl::device
