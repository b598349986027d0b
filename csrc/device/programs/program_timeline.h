// When the steps of programs happened on this rank's GPU: blocks note times in its memory, and the
// host collects them when they have ended.
//
// Each launch has room of its own: where it is in a CUDA graph, a replay writes over what the one
// before it has noted, and may do so after the timeline was taken, in memory that is then for
// nothing else.
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

/// One call at a time.
class PCCL_API ProgramTimeline {
   public:
    ProgramTimeline(sys::cuda::Driver& driver, int device) : driver_(driver), device_(device) {}
    ~ProgramTimeline();
    ProgramTimeline(const ProgramTimeline&) = delete;
    ProgramTimeline& operator=(const ProgramTimeline&) = delete;

    /// Has room for so many steps of blocks from now on, and has forgotten all others. 0: it is
    /// off. Nothing that was launched with times may run any more.
    Status start(std::size_t most);
    [[nodiscard]] bool is_on() const { return memory_ != 0; }
    /// The launch that comes next.
    struct Launch {
        std::shared_ptr<const schedule::Program> program;
        std::uint32_t sequence = 0;
        bool is_captured = false;
    };
    /// Lets `run` note times, where there is room.
    void add(kernels::Run& run, Launch launch);
    /// What was noted since start(); it is off then. All that was launched has ended.
    Result<schedule::TimedSteps> take();
    /// The destructor does not give its memory back: a kernel may still use it.
    void keep_memory() {
        memory_ = 0;
        of_graphs_.clear();
    }

   private:
    struct Timed {
        Launch launch;
        std::size_t first = 0;  // of its times
        std::size_t of_block = 0;
        int workers = 1;
    };
    void release();
    /// Of all blocks that share each lane, as one.
    static void collect(const Timed& timed, const abi::StepTime* times, const GpuClock& clock,
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
