// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/programs/program_timeline.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "csrc/device/programs/staging.h"

namespace pccl::device {
namespace {

/// Merges the times of all blocks that share a lane, in one window.
abi::DeviceStepTime together(const abi::DeviceStepTime* times, std::size_t stride, int workers) {
    constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
    abi::DeviceStepTime all{kNever, kNever, 0, 0};
    for (int worker = 0; worker < workers; ++worker, times += stride) {
        if (times->end == 0) continue;
        all.begin = std::min(all.begin, times->begin);
        all.moved = std::min(all.moved, times->moved);
        all.end = std::max(all.end, times->end);
        all.bytes += times->bytes;
    }
    return all;
}

}  // namespace

ProgramTimeline::~ProgramTimeline() {
    release();
    for (const sys::cuda::DeviceAddress each : of_graphs_)
        static_cast<void>(driver_.deallocate(each));
}

Status ProgramTimeline::start(std::size_t most) {
    release();
    if (most == 0) return Status::ok();
    PCCL_ASSIGN_OR_RETURN(began_, read_clock(driver_, device_));
    PCCL_ASSIGN_OR_RETURN(memory_, driver_.allocate(device_, most * sizeof(abi::DeviceStepTime)));
    room_ = most;
    return driver_.clear(memory_, most * sizeof(abi::DeviceStepTime));
}

void ProgramTimeline::release() {
    const bool is_in_graphs =
        std::ranges::any_of(launches_, [](const Timed& timed) { return timed.launch.is_captured; });
    if (is_in_graphs)
        of_graphs_.push_back(memory_);
    else if (memory_ != 0)
        static_cast<void>(driver_.deallocate(memory_));
    memory_ = 0;
    room_ = used_ = 0;
    lost_ = 0;
    launches_.clear();
}

void ProgramTimeline::add(kernels::ProgramLaunch& run, TimedLaunch launch) {
    if (!is_on()) return;
    const abi::DeviceProgram& of = run.program;
    const std::size_t windows = (of.part_bytes + of.window_bytes - 1) / of.window_bytes;
    const std::size_t of_block = windows * static_cast<std::size_t>(of.most_steps);
    const std::size_t all = of_block * static_cast<std::size_t>(of.lane_count * of.workers);
    if (all > room_ - used_) {
        lost_ += all;
        return;
    }
    run.program.times = std::bit_cast<abi::DeviceStepTime*>(memory_) + used_;
    run.program.times_of_block = of_block;
    launches_.push_back({std::move(launch), used_, of_block, of.workers});
    used_ += all;
}

Result<schedule::TimedSteps> ProgramTimeline::take() {
    schedule::TimedSteps taken;
    taken.lost = lost_;
    if (used_ > 0) {
        PCCL_ASSIGN_OR_RETURN(
            const PinnedStaging staging,
            PinnedStaging::make(driver_, device_, used_ * sizeof(abi::DeviceStepTime)));
        PCCL_TRY(staging.copy(staging.address(), memory_));
        PCCL_ASSIGN_OR_RETURN(const ClockReading now, read_clock(driver_, device_));
        const GpuClock clock{began_, now};
        taken.clock_error = clock.error();
        const auto* const times =
            reinterpret_cast<const abi::DeviceStepTime*>(staging.bytes().data());
        for (const Timed& timed : launches_) collect(timed, times, clock, taken.steps);
        std::ranges::stable_sort(taken.steps, {}, &schedule::TimedStep::end);
    }
    release();
    return taken;
}

void ProgramTimeline::collect(const Timed& timed, const abi::DeviceStepTime* times,
                              const GpuClock& clock, std::vector<schedule::TimedStep>& steps) {
    const auto& lanes = timed.launch.program->lanes;
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
        const std::size_t block = lane * static_cast<std::size_t>(timed.workers);
        for (std::size_t index = 0; index < timed.of_block && !lanes[lane].empty(); ++index) {
            const std::size_t window = index / lanes[lane].size();
            const std::size_t at = index % lanes[lane].size();
            const abi::DeviceStepTime time =
                together(times + timed.first + block * timed.of_block + index, timed.of_block,
                         timed.workers);
            if (time.end == 0) break;
            const schedule::Step& step = lanes[lane][at];
            steps.push_back({.begin = clock.host_time(time.begin),
                             .moved = clock.host_time(time.moved),
                             .end = clock.host_time(time.end),
                             .sequence = timed.launch.sequence,
                             .window = static_cast<std::uint32_t>(window),
                             .lane = static_cast<std::int32_t>(lane),
                             .step = static_cast<std::int32_t>(at),
                             .action = step.action,
                             .from = step.from,
                             .to = step.to,
                             .bytes = time.bytes,
                             .is_on_gpu = true});
        }
    }
}

}  // namespace pccl::device
