// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/contention.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "csrc/sys/cpu/cpu_times.h"

namespace pccl::transport {
namespace {

// A thread whose core is its own gets nearly all of it.
constexpr double kLeastShare = 0.85;
// Shorter times are known too coarsely: the kernel counts a running thread's at its ticks.
constexpr Duration kLeastWanted = std::chrono::milliseconds(8);
constexpr Duration kLongYield = std::chrono::microseconds(500);
constexpr int kLongYields = 3;
constexpr Duration kYieldsWithin = std::chrono::milliseconds(100);

/// Ranks that share a core queue for each other, and pass it on by yields.
bool is_short(const CoreUse& use) {
    const Duration wanted = use.ran + use.queued;
    if (wanted < kLeastWanted || use.ranks_on_core > 1) return false;
    return static_cast<double>(use.ran.count()) < kLeastShare * static_cast<double>(wanted.count());
}

struct ThreadLook {
    TimePoint at{};
    sys::CpuTimes times;
};

ThreadLook& latest_look() {
    thread_local ThreadLook look;
    return look;
}

}  // namespace

void Contention::note(TimePoint now, const CoreUse& use) {
    if (is_contended_) {
        // Ranks that sleep may queue for each other on one core: the next look shows whether they
        // do so as well when they spin.
        is_contended_ = now < until_;
    } else if (use.was_stopped || is_short(use)) {
        hold(now);
    }
}

void Contention::hold(TimePoint now) {
    if (is_contended_) return;
    // Spinning has been tried again, and was wrong soon.
    const bool failed = until_ != TimePoint{} && now < until_ + hold_;
    hold_ = failed ? std::min(2 * hold_, kMostHold) : kLeastHold;
    is_contended_ = true;
    until_ = now + hold_;
}

ContentionWatch::ContentionWatch(std::string root) : root_(std::move(root)) {}

void ContentionWatch::look(TimePoint now, std::uint32_t processes, int ranks_on_core) {
    ThreadLook& latest = latest_look();
    if (now - latest.at < kBetweenLooks) return;
    const sys::CpuTimes times = sys::thread_cpu_times();
    const sys::CpuTimes before = latest.at == TimePoint{} ? times : latest.times;
    latest = {now, times};
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    contention_.note(now, {.ran = times.ran - before.ran,
                           .queued = times.queued - before.queued,
                           .was_stopped = was_stopped(now, processes),
                           .ranks_on_core = std::max(ranks_on_core, 1)});
    is_contended_.store(contention_.is_contended(), std::memory_order_relaxed);
}

bool ContentionWatch::was_stopped(TimePoint now, std::uint32_t processes) {
    read_quota(now, processes);
    if (std::isinf(quota_)) return false;
    const std::uint64_t throttled = groups_.throttled();
    return throttled > std::exchange(throttled_, throttled);
}

void ContentionWatch::read_quota(TimePoint now, std::uint32_t processes) {
    if (quota_ != 0 && now - quota_read_ < kBetweenQuotas) return;
    quota_read_ = now;
    groups_ = sys::CpuGroups::of_process(root_);
    const double before = std::exchange(quota_, groups_.quota());
    if (quota_ == before || std::isinf(quota_)) return;
    throttled_ = groups_.throttled();
    // As many spinning processes would use it up.
    if (quota_ < processes) contention_.hold(now);
}

void ContentionWatch::note_yield(TimePoint now, Duration lost) {
    if (lost < kLongYield) return;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    if (now - first_long_yield_ > kYieldsWithin) {
        first_long_yield_ = now;
        long_yields_ = 0;
    }
    if (++long_yields_ < kLongYields) return;
    contention_.hold(now);
    is_contended_.store(true, std::memory_order_relaxed);
}

}  // namespace pccl::transport
