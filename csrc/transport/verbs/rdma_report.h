// SPDX-License-Identifier: Apache-2.0

// Report on libibverbs, the devices of this machine, and the choice among their ports.
#pragma once

#include "csrc/transport/rdma_devices.h"

namespace pccl::transport::verbs {

/// Looks at the machine anew. What is missing is part of the report.
[[nodiscard]] RdmaReport make_rdma_report();

}  // namespace pccl::transport::verbs
