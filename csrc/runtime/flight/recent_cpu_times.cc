// SPDX-License-Identifier: Apache-2.0
#include "csrc/runtime/flight/recent_cpu_times.h"

#include <chrono>
#include <mutex>

#include <pccl/deadline.h>
#include "csrc/base/fork.h"

namespace pccl::runtime {
namespace {

constexpr Duration kOldest = std::chrono::seconds(1);

struct Cache {
    Cache() { hold_while_forking(mutex); }

    std::mutex mutex;
    TimePoint read{};
    sys::CpuTimes times{};
};

}  // namespace

sys::CpuTimes recent_cpu_times() {
    // Never destroyed: threads use it during process exit.
    static auto* const cache = new Cache;
    const std::lock_guard lock(cache->mutex);
    const TimePoint now = system_clock().now();
    if (cache->read == TimePoint{} || now - cache->read >= kOldest) {
        cache->times = sys::cpu_times();
        cache->read = now;
    }
    return cache->times;
}

}  // namespace pccl::runtime
