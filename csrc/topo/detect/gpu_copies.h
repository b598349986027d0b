// SPDX-License-Identifier: Apache-2.0

// Copy times between the GPUs of this machine, measured by `pccl topo --measure`.
#pragma once

#include <string>
#include <vector>

#include <pccl/status.h>
#include "csrc/sys/cuda/driver.h"
#include "csrc/topo/machine/calibration.h"

namespace pccl::topo {

/// Times of copies from one GPU's memory to another's by the copy engine of the first.
struct GpuCopy {
    std::string from;  // bus ids
    std::string to;
    LinkTimes times;  // latency: of an 8-byte copy that a thread issues and waits for
};

/// Measures every pair in both directions, one after the other, and skips GPUs without peer access.
/// Uses 128 MiB on both GPUs at a time. kUnavailable: there is no driver or no GPU.
[[nodiscard]] PCCL_API Result<std::vector<GpuCopy>> measure_gpu_copies(sys::cuda::Driver& driver);
/// Measures this machine's GPUs with its own driver handle.
[[nodiscard]] PCCL_API Result<std::vector<GpuCopy>> measure_gpu_copies();

}  // namespace pccl::topo
