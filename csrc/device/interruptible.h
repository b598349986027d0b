// SPDX-License-Identifier: Apache-2.0

// Creation of GPU groups for callers that may have to stop waiting for the other ranks.
#pragma once

#include <functional>
#include <memory>

#include "csrc/device/device_group.h"

namespace pccl::device {

/// Runs DeviceGroup::create() on a thread of its own, while this thread calls `interrupted` ten
/// times a second. Returns its status where that is not ok; the other ranks then stop waiting. A
/// child of fork() may drop the group and leaves it as it is: CUDA does not work there.
[[nodiscard]] PCCL_API Result<std::shared_ptr<DeviceGroup>> create_interruptibly(
    const DeviceGroupOptions& options, const std::function<Status()>& interrupted);

}  // namespace pccl::device
