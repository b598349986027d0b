// SPDX-License-Identifier: Apache-2.0

// Kernel that reports the GPU's time to the host (abi/clock_pings.h).
#include "csrc/kernels/device/counters.cuh"
#include "csrc/kernels/device/ptx.cuh"
#include "csrc/kernels/dispatch.cuh"

namespace pccl::kernels {
namespace {

using namespace device;

constexpr std::uint64_t kLongestNs = 20'000'000'000;  // for all questions

/// Answers the host's questions in one thread.
__global__ void __launch_bounds__(32) answer_pings(const __grid_constant__ ClockLaunch clock) {
    await_launch_ahead();
    if (threadIdx.x != 0) return;
    abi::ClockPings& pings = *clock.pings;
    const std::uint64_t began = global_timer_ns();
    for (std::uint32_t number = 1; number <= abi::kClockPings; ++number) {
        while (!has_reached(load_acquire(&pings.requested), number)) {
            if (global_timer_ns() - began > kLongestNs) return;
            __nanosleep(0);
        }
        store_relaxed(&pings.gpu_ns, global_timer_ns());
        store_release(&pings.answered, number);
    }
}

}  // namespace

Status launch_clock(const ClockLaunch& clock, Stream stream) {
    return launch_kernel(answer_pings, clock,
                         {.blocks = clock.pings == nullptr ? 0 : 1, .threads = 32}, stream);
}

}  // namespace pccl::kernels
