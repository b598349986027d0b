// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/cpu/tick_clock.h"

#include <fstream>
#include <string>

namespace pccl {
namespace {

constexpr Duration kMeasured = std::chrono::milliseconds(5);
constexpr Duration kFresh = std::chrono::milliseconds(50);
// Longer gaps between two readings of the clock mean an interruption: the moment is taken again.
constexpr Duration kUndisturbed = std::chrono::nanoseconds(200);
constexpr int kTries = 20;

/// Returns whether the kernel itself uses the counter as its clock: then it runs at one rate, and
/// agrees on all cores.
bool is_trusted_by_kernel() {
    std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    std::string name;
    return file >> name && name == "tsc";
}

}  // namespace

TickClock::Moment TickClock::moment() {
    Moment best;
    Duration shortest = Duration::max();
    for (int i = 0; i < kTries && shortest > kUndisturbed; ++i) {
        const TimePoint before = system_clock().now();
        const std::uint64_t count = ticks();
        const Duration taken = system_clock().now() - before;
        if (taken >= shortest) continue;
        shortest = taken;
        best = {before + taken / 2, count};
    }
    return best;
}

double TickClock::measured_ns_per_tick() {
#if defined(__x86_64__)
    if (!is_trusted_by_kernel()) return 0;
    const Moment first = moment();
    while (system_clock().now() - first.time < kMeasured) continue;
    const Moment last = moment();
    return last.ticks > first.ticks ? static_cast<double>((last.time - first.time).count()) /
                                          static_cast<double>(last.ticks - first.ticks)
                                    : 0;
#else
    return 0;
#endif
}

double TickClock::ns_per_tick() {
    static const double found = measured_ns_per_tick();
    return found;
}

void TickClock::find_rate() { static_cast<void>(ns_per_tick()); }

void TickClock::refresh() {
    if (ns_per_tick_ != 0 && now() - set_.time < kFresh) return;
    ns_per_tick_ = ns_per_tick();
    if (ns_per_tick_ != 0) set_ = moment();
}

}  // namespace pccl
