// SPDX-License-Identifier: Apache-2.0

// Timeline of a program's steps on this rank's GPU: blocks write times to GPU memory, and the host
// collects them after they have finished.
//
// Each launch has memory of its own. In a CUDA graph, a replay overwrites the times of the previous
// one. It may do so after the timeline was taken, so that memory is not used for anything else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "csrc/device/programs/gpu_clock.h"
#include "csrc/kernels/launch.h"
#include "csrc/schedule/timed_step.h"
#include "csrc/sys/cuda/driver.h"

namespace pccl::device {

/// Not thread-safe: one call at a time.
class PCCL_API ProgramTimeline {
   public:
    ProgramTimeline(sys::cuda::Driver& driver, int device) : driver_(driver), device_(device) {}
    ~ProgramTimeline();
    ProgramTimeline(const ProgramTimeline&) = delete;
    ProgramTimeline& operator=(const ProgramTimeline&) = delete;

    /// Reserves memory for `most` block steps and drops earlier ones; 0 turns recording off. All
    /// launches with times must have finished.
    Status start(std::size_t most);
    [[nodiscard]] bool is_on() const { return memory_ != 0; }
    /// The next launch.
    struct TimedLaunch {
        std::shared_ptr<const schedule::Program> program;
        std::uint32_t sequence = 0;
        bool is_captured = false;
    };
    /// Lets `run` record times, where there is room.
    void add(kernels::ProgramLaunch& run, TimedLaunch launch);
    /// Returns the times since start() and turns recording off. All launches must have finished.
    Result<schedule::TimedSteps> take();
    /// Makes the destructor leave the memory allocated: a kernel may still use it.
    void keep_memory() {
        memory_ = 0;
        of_graphs_.clear();
    }

   private:
    struct Timed {
        TimedLaunch launch;
        std::size_t first = 0;  // index of its times
        std::size_t of_block = 0;
        int workers = 1;
    };
    void release();
    /// Merges the times of all blocks that share a lane into one.
    static void collect(const Timed& timed, const abi::DeviceStepTime* times, const GpuClock& clock,
                        std::vector<schedule::TimedStep>& steps);

    sys::cuda::Driver& driver_;
    const int device_;
    sys::cuda::DeviceAddress memory_ = 0;
    std::size_t room_ = 0;
    std::size_t used_ = 0;
    std::uint64_t lost_ = 0;
    ClockReading began_;
    std::vector<Timed> launches_;
    std::vector<sys::cuda::DeviceAddress> of_graphs_;  // memory that replays may write to
};

}  // namespace pccl::device
