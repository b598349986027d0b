// Schedules as tables that thread blocks read (abi/device_program.h).
#pragma once

#include <cstddef>
#include <vector>

#include "csrc/abi/device_program.h"
#include "csrc/base/status.h"
#include "csrc/kernels/thresholds.h"
#include "csrc/schedule/schedule.h"

namespace pccl::device {

/// What all ranks lay out alike.
struct DeviceGrid {
    int lanes = 1;                   // of the rank with the most
    int channels = 1;                // from one rank to another, at most
    int chunks = 1;                  // of a block
    int longest = 1;                 // chunks in the longest message
    std::size_t least_in_chunk = 1;  // bytes, before another worker shares a lane

    /// Bytes of a chunk that go at once, at most, in messages of one form.
    [[nodiscard]] std::size_t window_bytes(abi::MessageForm form) const;
    /// Whether so many LL windows have room for blocks of `bytes`.
    [[nodiscard]] bool suits_ll(std::size_t bytes, std::size_t windows) const;
    /// Of each lane, at most.
    [[nodiscard]] int most_workers() const;
    /// For blocks of `bytes`.
    [[nodiscard]] int workers(std::size_t bytes) const;
};

/// kUnsupported names what a GPU does not run: phases, too many lanes, channels or chunks.
[[nodiscard]] PCCL_API Result<DeviceGrid> device_grid(
    const schedule::Schedule& schedule,
    const kernels::Thresholds& thresholds = kernels::thresholds_of(kernels::kHopper));

/// One rank's program.
struct DeviceTables {
    std::vector<abi::DeviceLane> lanes;
    std::vector<abi::DeviceStep> steps;  // most_steps of each lane: what is over does nothing
    std::vector<abi::DevicePort> ports;
    int most_steps = 0;
    int most_ports = 0;
    std::vector<abi::DeviceWait> waits;
    std::vector<abi::DeviceSlice> places;
    int scratch_chunks = 0;
    bool is_coupled = false;  // lanes wait for each other
};

/// Of a program whose schedule has a grid, and so many chunks in a block. kUnsupported names the
/// step.
[[nodiscard]] PCCL_API Result<DeviceTables> tabulate(const schedule::Program& program, int chunks);

}  // namespace pccl::device
