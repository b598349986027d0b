// How long copies between the GPUs of this machine take: what `pccl topo --measure` finds out about
// them.
#pragma once

#include <string>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/topo/machine/calibration.h"

namespace pccl::topo {

/// From one GPU's memory to another's, by the first one's copy engine.
struct GpuCopy {
    std::string from;  // bus ids
    std::string to;
    LinkTimes times;  // latency: of a copy of 8 bytes that a thread issues and waits for
};

/// Between any two, both ways, one after the other; GPUs that do not reach each other are left out.
/// Takes 128 MiB on both at a time. kUnavailable without a driver or a GPU.
[[nodiscard]] PCCL_API Result<std::vector<GpuCopy>> measure_gpu_copies(sys::cuda::Driver& driver);
/// The same, of this machine's GPUs.
[[nodiscard]] PCCL_API Result<std::vector<GpuCopy>> measure_gpu_copies();

}  // namespace pccl::topo
