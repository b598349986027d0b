// SPDX-License-Identifier: Apache-2.0

// Ways of RDMA devices to memory of GPUs as users see them.
#pragma once

#include <functional>
#include <span>
#include <string>

#include <pccl/status.h>
#include "csrc/transport/verbs/adapter.h"
#include "csrc/transport/verbs/gpu_way.h"

namespace pccl::transport::verbs {

/// Returns how a device reaches memory of GPUs by the settings of this process, as far as the
/// device and the kernel show it: "by dmabuf", "by peermem (dmabuf: why not)" or "through pinned
/// memory (the reasons against RDMA)".
[[nodiscard]] std::string describe_gpu_access(const std::string& device);
/// Returns the same after a registration of memory of the first GPU; where this process has no GPU,
/// what describe_gpu_access() returns.
[[nodiscard]] std::string try_gpu_access(Adapter& adapter);

}  // namespace pccl::transport::verbs
