// SPDX-License-Identifier: Apache-2.0

// Schedules as tables that thread blocks read (abi/device_program.h).
#pragma once

#include <cstddef>
#include <vector>

#include <pccl/status.h>
#include "csrc/abi/device_program.h"
#include "csrc/kernels/thresholds.h"
#include "csrc/schedule/schedule.h"

namespace pccl::device {

/// Dimensions of the layout, the same on all ranks.
struct DeviceGrid {
    int lanes = 1;                   // of the rank with the most
    int channels = 1;                // from one rank to another, at most
    int chunks = 1;                  // of a block
    int longest = 1;                 // chunks in the longest message
    std::size_t least_in_chunk = 1;  // bytes, before another worker shares a lane
    int fifos = abi::kDeviceFifos;   // from one rank to another

    /// Returns the most bytes of a chunk that go at once in messages of one form.
    [[nodiscard]] std::size_t window_bytes(abi::MessageForm form) const;
    /// Returns whether `windows` LL windows have room for blocks of `bytes`.
    [[nodiscard]] bool suits_ll(std::size_t bytes, std::size_t windows) const;
    /// Returns the most workers of each lane.
    [[nodiscard]] int most_workers() const;
    /// Returns the workers of each lane for blocks of `bytes`.
    [[nodiscard]] int workers(std::size_t bytes) const;
};

/// Returns the grid of a schedule. kUnsupported names a feature that GPUs do not run: phases, too
/// many lanes, channels or chunks.
[[nodiscard]] PCCL_API Result<DeviceGrid> device_grid(
    const schedule::Schedule& schedule,
    const kernels::Thresholds& thresholds = kernels::thresholds_of(kernels::kHopper));

/// Program of one rank.
struct DeviceTables {
    std::vector<abi::DeviceLane> lanes;
    std::vector<abi::DeviceStep> steps;  // most_steps of each lane; the surplus does nothing
    std::vector<abi::DevicePort> ports;
    int most_steps = 0;
    int most_ports = 0;
    std::vector<abi::DeviceWait> waits;
    std::vector<abi::DeviceSlice> places;
    int scratch_chunks = 0;
    bool is_coupled = false;  // lanes wait for each other
};

/// Returns the tables of a program whose schedule has a grid and `chunks` chunks in a block.
/// kUnsupported names the step.
[[nodiscard]] PCCL_API Result<DeviceTables> tabulate(const schedule::Program& program, int chunks);

}  // namespace pccl::device
