// SPDX-License-Identifier: Apache-2.0
#include "csrc/costs/measure.h"

#include <algorithm>

#include "csrc/base/log/log.h"
#include "csrc/base/threads/background_thread.h"
#include "csrc/costs/measure_tcp.h"
#include "csrc/costs/ping_pong.h"
#include "csrc/costs/timing_samples.h"
#include "csrc/sys/host.h"

namespace pccl::costs {
namespace {

// On an idle machine, repeated measurements differ by some percent, and only threads of the kernel
// preempt.
constexpr double kQuietSpread = 1.25;
constexpr long kQuietInterruptions = 4;

/// Sets the cache sizes that the kernel reports, and defaults otherwise; each level is at least as
/// large as the one below it.
void take_cache_sizes(MachineCosts& into) {
    const sys::CacheBytes found = sys::cache_bytes();
    for (std::size_t level = 0; level < found.size(); ++level) {
        std::size_t& bytes = into.cache_bytes[level];
        if (found[level] > 0) bytes = found[level];
        if (level > 0) bytes = std::max(bytes, into.cache_bytes[level - 1]);
    }
}

/// Replaces implausible figures by defaults: a thread that rarely ran has measured the time of
/// others.
void forget_implausible(MachineCosts& costs) {
    constexpr double kMostTimesUsual = 25;
    const MachineCosts usual;
    const auto check = [](Figure& figure, const Figure& assumed) {
        if (figure.seconds > kMostTimesUsual * assumed.seconds) figure = assumed;
    };
    for (const NamedFigure& named : named_figures())
        check(costs.*named.figure, usual.*named.figure);
    for (const NamedByteFigures& named : named_byte_figures())
        for (std::size_t level = 0; level < kLevels; ++level)
            check((costs.*named.figures)[level], (usual.*named.figures)[level]);
}

MachineCosts measure_here(Duration budget) {
    const Deadline deadline = Deadline::after(budget);
    MachineCosts costs;
    costs.origin.load = sys::load_average();
    costs.origin.cores = static_cast<int>(sys::allowed_cores().count());
    take_cache_sizes(costs);
    static_cast<void>(sys::run_on(sys::CoreSet().set(sys::current_core())));
    PingPongThread peer_thread;
    double spread = 1;
    const bool has_peer_thread =
        meet_on_another_core(peer_thread, costs, deadline.within(budget / 4));
    if (has_peer_thread) {
        measure_wake(peer_thread, costs, deadline.within(budget / 10));
        const Status tcp = measure_tcp(peer_thread, costs, deadline.within(budget / 10));
        if (!tcp.is_ok()) log(LogLevel::kInfo, "what TCP costs is not measured: ", tcp.message());
    }
    // The remaining time, less the share of the last measurement.
    measure_bytes(has_peer_thread ? &peer_thread : nullptr, costs,
                  deadline.within(deadline.remaining() - budget / 10), spread);
    // Count before the two threads share a core.
    const long interruptions = interruptions_of_this_thread() + peer_thread.interruptions();
    measure_shared_core(peer_thread, costs, deadline.within(budget / 10));
    forget_implausible(costs);
    const bool has_all = costs.origin.cores == 1 || costs.is_of_two_cores();
    costs.origin.is_quiet =
        has_all && spread <= kQuietSpread && interruptions <= kQuietInterruptions;
    costs.origin.spread = spread;
    costs.origin.tries = 1;
    return costs;
}

}  // namespace

MachineCosts measure(Duration budget) {
    MachineCosts costs;
    const double seconds = seconds_of([&] {
        // The measuring thread is separate, because it is bound to a core.
        const BackgroundThread measuring("pccl-measure", [&] { costs = measure_here(budget); });
    });
    costs.origin.took = seconds * 1e3;
    return costs;
}

}  // namespace pccl::costs
