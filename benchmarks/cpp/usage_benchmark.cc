// SPDX-License-Identifier: Apache-2.0

// Times of the counters of a group (csrc/runtime/flight/group_usage.h): of one call with no wait,
// and with one, and of the end of a window with some paths.
//
//     usage_benchmark --benchmark_filter=call
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <vector>

#include "csrc/runtime/flight/group_usage.h"
#include "csrc/sys/cpu/cpu_times.h"

namespace {

using pccl::Awaited;
using pccl::TimePoint;
using pccl::runtime::GroupUsage;
using pccl::runtime::PeerPath;
using std::chrono::microseconds;

constexpr microseconds kCall{20};

/// Counts calls of 1 KiB one after the other, in the windows of the time that they would take.
void count_calls(benchmark::State& state) {
    const bool has_wait = state.range(0) != 0;
    GroupUsage usage;
    TimePoint now = pccl::system_clock().now();
    for (auto _ : state) {
        if (has_wait) usage.add_wait({{1, Awaited::Act::kSend}}, kCall);
        usage.add_call({.bytes = 1024, .begun = now, .ended = now + kCall, .predicted = kCall});
        now += 2 * kCall;
    }
}
BENCHMARK(count_calls)->Name("call")->ArgName("waits")->Arg(0)->Arg(1);

void end_windows(benchmark::State& state) {
    std::vector<PeerPath> paths(static_cast<std::size_t>(state.range(0)));
    for (std::size_t peer = 0; peer < paths.size(); ++peer)
        paths[peer] = {.peer = static_cast<pccl::Rank>(peer), .interface = "eth0"};
    GroupUsage usage([&] { return paths; });
    TimePoint now = pccl::system_clock().now();
    for (auto _ : state) {
        now += std::chrono::seconds(4);
        usage.add_call({.bytes = 1024, .begun = now, .ended = now, .predicted = kCall});
    }
}
BENCHMARK(end_windows)->Name("window")->ArgName("paths")->Arg(2)->Arg(16)->Arg(64);

/// Reads the times of all threads, as the end of a window does once a second.
void read_cpu_times(benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(pccl::sys::cpu_times());
}
BENCHMARK(read_cpu_times)->Name("cpu_times");

}  // namespace

BENCHMARK_MAIN();
