// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/programs/gpu_clock.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <optional>

#include "csrc/abi/clock_pings.h"
#include "csrc/base/threads/background_thread.h"
#include "csrc/device/programs/staging.h"
#include "csrc/kernels/launch.h"
#include "csrc/sys/cpu/relax.h"

namespace pccl::device {
namespace {

constexpr std::chrono::milliseconds kEnough{20};        // time for questions where cores are busy
constexpr std::chrono::seconds kLongestWait{20};        // for all answers
constexpr std::chrono::microseconds kUsualAnswer{100};  // spin for this long before sleeping
constexpr std::chrono::microseconds kPause{50};

/// Requests one reading; nullopt where no answer arrived in time.
std::optional<ClockReading> request(abi::ClockPings& pings, std::uint32_t number,
                                    Deadline deadline) {
    const std::atomic_ref answered(pings.answered);
    const TimePoint left = system_clock().now();
    std::atomic_ref(pings.requested).store(number, std::memory_order_release);
    while (answered.load(std::memory_order_acquire) != number) {
        if (deadline.passed()) return std::nullopt;
        if (system_clock().now() - left < kUsualAnswer)
            relax();
        else
            system_clock().sleep_for(kPause);
    }
    const Duration both_ways = system_clock().now() - left;
    return ClockReading{pings.gpu_ns, left + both_ways / 2, (both_ways + Duration(1)) / 2};
}

std::optional<ClockReading> query_all(abi::ClockPings& pings) {
    const Deadline deadline = Deadline::after(kLongestWait);
    const Deadline enough = Deadline::after(kEnough);
    std::optional<ClockReading> best;
    for (std::uint32_t number = 1; number <= abi::kClockPings && !(best && enough.passed());
         ++number) {
        const auto reading = request(pings, number, deadline);
        if (!reading) return std::nullopt;
        if (!best || reading->error < best->error) best = reading;
    }
    // The kernel then answers the remaining questions at once and ends.
    std::atomic_ref(pings.requested).store(abi::kClockPings, std::memory_order_release);
    return best;
}

}  // namespace

Result<ClockReading> read_clock(sys::cuda::Driver& driver, int device) {
    PCCL_ASSIGN_OR_RETURN(const PinnedStaging memory,
                          PinnedStaging::make(driver, device, sizeof(abi::ClockPings)));
    auto& pings = *reinterpret_cast<abi::ClockPings*>(memory.bytes().data());
    std::optional<ClockReading> reading;
    Status launched;
    {
        // The questions run on a thread of their own: a launch may return before its kernel starts,
        // or after it has ended.
        const BackgroundThread requester("pccl-gpu-clock", [&] { reading = query_all(pings); });
        launched = kernels::launch_clock({&pings}, memory.stream());
    }
    PCCL_TRY(launched);
    PCCL_TRY(driver.wait(memory.stream()));
    if (reading) return *reading;
    return Status::timeout("the GPU did not return its time");
}

TimePoint GpuClock::host_time(std::uint64_t gpu_ns) const {
    const auto since = [&](std::uint64_t now) {
        return static_cast<double>(static_cast<std::int64_t>(now - first.gpu_ns));
    };
    const double whole = since(last.gpu_ns);
    const double pace =
        whole > 0 ? static_cast<double>((last.host - first.host).count()) / whole : 1.0;
    return first.host + Duration(std::llround(since(gpu_ns) * pace));
}

}  // namespace pccl::device
