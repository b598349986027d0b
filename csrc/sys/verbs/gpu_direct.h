// SPDX-License-Identifier: Apache-2.0

// Access of RDMA devices to memory of GPUs, as far as the device and its driver decide. This header
// needs no header of rdma-core.
#pragma once

#include <string>

#include <pccl/status.h>

namespace pccl::sys::verbs {

/// Returns whether the driver of a device registers dma-bufs, by which GPUs export their memory.
/// Errors as of Device::open().
[[nodiscard]] Result<bool> takes_dmabuf(const std::string& device);

}  // namespace pccl::sys::verbs
