// SPDX-License-Identifier: Apache-2.0
#include "csrc/runtime/flight/group_usage.h"

#include <algorithm>

namespace pccl::runtime {
namespace {

/// Adds to a counter with one writer.
template <typename Value>
void add(std::atomic<Value>& counter, Value more) {
    counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

}  // namespace

void GroupUsage::add_call(const Call& call) {
    // Calls that were queued behind others began when those ended.
    const TimePoint begun = std::max(call.begun, last_end_);
    if (last_end_ != TimePoint{}) add(between_, Duration(begun - last_end_));
    last_end_ = std::max(call.ended, begun);
    const Duration taken = last_end_ - begun;
    Counters& counters = collectives_[static_cast<std::size_t>(call.path)];
    add(counters.calls, std::uint64_t{1});
    add(counters.bytes, std::uint64_t{call.bytes});
    add(counters.taken, taken);
    add(counters.predicted, call.predicted == Duration::zero() ? taken : call.predicted);
}

void GroupUsage::add_wait(const AwaitedRanks& awaited, Duration waited) {
    if (awaited.empty()) return;
    const std::lock_guard lock(mutex_);
    for (const Awaited& each : awaited)
        waits_[{each.rank, each.act}] += waited / static_cast<Duration::rep>(awaited.size());
}

UsageSnapshot GroupUsage::snapshot(std::size_t most) const {
    UsageSnapshot now;
    for (std::size_t path = 0; path < collectives_.size(); ++path) {
        const Counters& counters = collectives_[path];
        now.collectives[path] = {.calls = counters.calls.load(std::memory_order_relaxed),
                                 .bytes = counters.bytes.load(std::memory_order_relaxed),
                                 .taken = counters.taken.load(std::memory_order_relaxed),
                                 .predicted = counters.predicted.load(std::memory_order_relaxed)};
    }
    now.between = between_.load(std::memory_order_relaxed);
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [key, waited] : waits_)
            now.waits.push_back({.awaited = {key.first, key.second}, .waited = waited});
    }
    std::ranges::sort(now.waits, std::greater{}, &RankWait::waited);
    if (now.waits.size() > most) now.waits.resize(most);
    return now;
}

}  // namespace pccl::runtime
