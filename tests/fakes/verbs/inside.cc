// SPDX-License-Identifier: Apache-2.0

#include "tests/fakes/verbs/inside.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <utility>

#include "tests/fakes/verbs/fabric.h"

namespace pccl::fake_verbs {

namespace {

std::atomic<int> measured{FAKE_VERBS_TIME_OFF};
std::atomic<uint64_t> outside_ns{0};  // of each measurement: what its own calls take outside of it
std::atomic<double> ns_per_tick{0};

uint64_t cpu_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t ticks() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return now_ns();
#endif
}

double measure_ticks() {
    const uint64_t ns = now_ns();
    const uint64_t begun = ticks();
    while (now_ns() - ns < 5'000'000) {
    }
    return static_cast<double>(now_ns() - ns) / static_cast<double>(ticks() - begun);
}

// The median of what a pair of readings costs more than it shows.
uint64_t measure_outside() {
    constexpr int kTimes = 101;
    uint64_t costs[kTimes];
    for (uint64_t& cost : costs) {
        const uint64_t before = cpu_ns();
        const uint64_t begun = cpu_ns();
        const uint64_t ended = cpu_ns();
        const uint64_t after = cpu_ns();
        cost = (after - before) * 2 / 3 - (ended - begun);
    }
    std::sort(costs, costs + kTimes);
    return costs[kTimes / 2];
}

// What a thread has measured by ticks, without the intervals in which it was preempted.
struct Measured {
    long switches;
    uint64_t intervals;
    uint64_t ns;
};
thread_local Measured by_ticks{};

// The length of an interval: of a long one in which, or before which, the thread was preempted, the
// mean of the others instead.
uint64_t without_preemption(uint64_t ns) {
    constexpr uint64_t kLongNs = 5000;
    Measured& own = by_ticks;
    if (ns > kLongNs) {
        rusage usage{};
        ::getrusage(RUSAGE_THREAD, &usage);
        const long switches = usage.ru_nivcsw + usage.ru_nvcsw;
        if (switches != std::exchange(own.switches, switches))
            return own.ns / std::max<uint64_t>(own.intervals, 1);
    }
    ++own.intervals;
    own.ns += ns;
    return ns;
}

}  // namespace

Inside::Inside() : how_(measured.load(std::memory_order_relaxed)) {
    if (how_ == FAKE_VERBS_TIME_CPU) begun_ = cpu_ns();
    if (how_ == FAKE_VERBS_TIME_TICKS) begun_ = ticks();
}

Inside::~Inside() {
    if (how_ == FAKE_VERBS_TIME_OFF) return;
    uint64_t spent = 0;
    if (how_ == FAKE_VERBS_TIME_CPU) {
        spent = cpu_ns() - begun_ + outside_ns.load();
    } else {
        const double ns = static_cast<double>(ticks() - begun_) * ns_per_tick.load();
        spent = without_preemption(static_cast<uint64_t>(ns));
    }
    count(this_process().counters.inside_ns, spent);
}

}  // namespace pccl::fake_verbs

int fake_verbs_measure_time(int how) {
    using namespace pccl::fake_verbs;
    if (how < FAKE_VERBS_TIME_OFF || how > FAKE_VERBS_TIME_TICKS) return EINVAL;
    if (how == FAKE_VERBS_TIME_CPU) outside_ns = measure_outside();
    if (how == FAKE_VERBS_TIME_TICKS && ns_per_tick == 0) ns_per_tick = measure_ticks();
    measured = how;
    return 0;
}
