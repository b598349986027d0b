// SPDX-License-Identifier: Apache-2.0

// Examination of the first usable port of this process, by the classes of the transport.
#pragma once

#include <memory>

#include <pccl/status.h>
#include "csrc/transport/rdma_devices.h"

namespace pccl::transport::verbs {

[[nodiscard]] Result<std::unique_ptr<RdmaDoctor>> make_rdma_doctor();

}  // namespace pccl::transport::verbs
