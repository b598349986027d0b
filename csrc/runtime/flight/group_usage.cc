// SPDX-License-Identifier: Apache-2.0
#include "csrc/runtime/flight/group_usage.h"

#include <algorithm>
#include <limits>

#include "csrc/base/clock.h"
#include "csrc/runtime/flight/recent_cpu_times.h"

namespace pccl::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

/// Increases a counter with one writer.
template <typename Value>
void increase(std::atomic<Value>& counter, Value more) {
    counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

template <typename Value>
Value value_of(const std::atomic<Value>& counter) {
    return counter.load(std::memory_order_relaxed);
}

template <typename Waits>
std::vector<RankWait> list_of(const Waits& waits) {
    std::vector<RankWait> list;
    list.reserve(waits.size());
    for (const auto& [key, waited] : waits)
        list.push_back({.awaited = {key.first, key.second}, .waited = waited});
    return list;
}

}  // namespace

void GroupUsage::add_call(const Call& call) {
    // Calls that were queued behind others began when those ended.
    const TimePoint begun = std::max(call.begun, last_end_);
    if (last_end_ != TimePoint{}) increase(between_, Duration(begun - last_end_));
    last_end_ = std::max(call.ended, begun);
    const Duration taken = last_end_ - begun;
    Counters& counters = collectives_[static_cast<std::size_t>(call.path)];
    increase(counters.calls, std::uint64_t{1});
    increase(counters.bytes, std::uint64_t{call.bytes});
    increase(counters.taken, taken);
    increase(counters.predicted, call.predicted == Duration::zero() ? taken : call.predicted);
    turn_window_at(last_end_);
}

void GroupUsage::add_message(const Message& message) {
    MessageCounters& counters = messages_[static_cast<std::size_t>(message.direction)];
    increase(counters.calls, std::uint64_t{1});
    increase(counters.bytes, std::uint64_t{message.bytes});
    // Messages overlap: their times since the last end of one count.
    const TimePoint begun = std::max(message.begun, last_message_end_);
    last_message_end_ = std::max(message.ended, begun);
    increase(under_way_, Duration(last_message_end_ - begun));
    turn_window_at(last_message_end_);
}

void GroupUsage::add_wait(const AwaitedRanks& awaited, Duration waited, Waiter waiter) {
    if (awaited.empty()) return;
    const std::lock_guard lock(mutex_);
    Waits& waits = waits_[static_cast<std::size_t>(waiter)];
    for (const Awaited& each : awaited)
        waits[{each.rank, each.act}] += waited / static_cast<Duration::rep>(awaited.size());
}

UsageSnapshot GroupUsage::snapshot(std::size_t most) const {
    UsageSnapshot now;
    for (std::size_t path = 0; path < collectives_.size(); ++path) {
        const Counters& counters = collectives_[path];
        now.collectives[path] = {.calls = value_of(counters.calls),
                                 .bytes = value_of(counters.bytes),
                                 .taken = value_of(counters.taken),
                                 .predicted = value_of(counters.predicted)};
    }
    now.between = value_of(between_);
    const auto totals_of = [&](Direction direction) {
        const MessageCounters& counters = messages_[static_cast<std::size_t>(direction)];
        return MessageTotals{value_of(counters.calls), value_of(counters.bytes)};
    };
    now.messages = {.sent = totals_of(Direction::kSent),
                    .received = totals_of(Direction::kReceived),
                    .under_way = value_of(under_way_)};
    {
        const std::lock_guard lock(mutex_);
        now.waits = list_of(waits_[static_cast<std::size_t>(Waiter::kCollective)]);
        now.messages.waits = list_of(waits_[static_cast<std::size_t>(Waiter::kMessage)]);
    }
    limit(now, most);
    return now;
}

UsageSnapshot GroupUsage::all() const {
    UsageSnapshot now = snapshot(kAll);
    if (paths_) now.paths = paths_();
    now.cpu = recent_cpu_times();
    return now;
}

void GroupUsage::turn_window(TimePoint now) {
    const milliseconds wall(wall_clock_ms());
    const seconds begin = UsageHistory::begin_of(wall);
    if (window_end_ != TimePoint{}) {
        UsageSnapshot total = all();
        UsageSnapshot usage = difference(total, before_window_);
        // A single operation may have taken many windows: it counts in that of its end.
        const bool is_one = operations_of(usage) == 1;
        history_.add(is_one ? begin : window_begin_, std::move(usage));
        before_window_ = std::move(total);
    }
    window_begin_ = begin;
    window_end_ = now + (begin + UsageHistory::kShortest - wall);
}

std::vector<UsageWindow> GroupUsage::history(seconds from) const {
    UsageHistory whole = history_;
    UsageSnapshot open = difference(all(), before_window_);
    if (operations_of(open) > 0) whole.add(window_begin_, std::move(open));
    std::vector<UsageWindow> windows(whole.windows().begin(), whole.windows().end());
    std::erase_if(windows, [&](const UsageWindow& window) { return window.end() <= from; });
    return windows;
}

}  // namespace pccl::runtime
