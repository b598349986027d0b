// The clock of a GPU beside that of its host: they begin elsewhere, and do not run alike.
#pragma once

#include <algorithm>
#include <cstdint>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/sys/cuda/driver.h"

namespace pccl::device {

/// What a GPU's global timer showed at a moment of system_clock(), and by how much that may be off.
struct ClockReading {
    std::uint64_t gpu_ns = 0;
    TimePoint host{};
    Duration error{};
};

/// By questions to a kernel, of which the one that was answered soonest says most. kTimeout where
/// it does not come to the GPU.
[[nodiscard]] PCCL_API Result<ClockReading> read_clock(sys::cuda::Driver& driver, int device);

/// Between two readings, and nearby.
struct GpuClock {
    ClockReading first;
    ClockReading last;
    [[nodiscard]] PCCL_API TimePoint host_time(std::uint64_t gpu_ns) const;
    [[nodiscard]] Duration error() const { return std::max(first.error, last.error); }
};

}  // namespace pccl::device
