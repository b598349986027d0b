// SPDX-License-Identifier: Apache-2.0

// Clock of a GPU relative to that of its host: they have different origins and rates.
#pragma once

#include <algorithm>
#include <cstdint>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/sys/cuda/driver.h"

namespace pccl::device {

/// A GPU's global timer at a moment of system_clock(), and the error bound.
struct ClockReading {
    std::uint64_t gpu_ns = 0;
    TimePoint host{};
    Duration error{};
};

/// Reads both clocks by questions to a kernel, and uses the answer with the shortest round trip.
/// kTimeout where the kernel does not start.
[[nodiscard]] PCCL_API Result<ClockReading> read_clock(sys::cuda::Driver& driver, int device);

/// Interpolates between two readings, and extrapolates nearby.
struct GpuClock {
    ClockReading first;
    ClockReading last;
    [[nodiscard]] PCCL_API TimePoint host_time(std::uint64_t gpu_ns) const;
    [[nodiscard]] Duration error() const { return std::max(first.error, last.error); }
};

}  // namespace pccl::device
