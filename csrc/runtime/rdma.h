// SPDX-License-Identifier: Apache-2.0

// RDMA of this machine as users see it, also in builds without it.
#pragma once

#include <memory>

#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/transport/rdma_devices.h"

namespace pccl::runtime {

/// Error of a build without RDMA.
inline constexpr const char* kNoRdma =
    "this build of pccl has no RDMA: build it where libibverbs-dev is installed";

/// Looks at libibverbs and the RDMA devices of this machine. What is missing is part of the report.
[[nodiscard]] PCCL_API transport::RdmaReport rdma_report();

/// Returns an examination of RDMA. kUnavailable in a build without it.
[[nodiscard]] PCCL_API Result<std::unique_ptr<transport::RdmaDoctor>> make_rdma_doctor();

}  // namespace pccl::runtime
