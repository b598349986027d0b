// SPDX-License-Identifier: Apache-2.0
#include "csrc/runtime/flight/usage_snapshot.h"

#include <algorithm>
#include <functional>

namespace pccl::runtime {
namespace {

void subtract(CollectiveCounts& now, const CollectiveCounts& before) {
    now.calls -= before.calls;
    now.bytes -= before.bytes;
    now.taken -= before.taken;
    now.predicted -= before.predicted;
}

void add(CollectiveCounts& sum, const CollectiveCounts& more) {
    sum.calls += more.calls;
    sum.bytes += more.bytes;
    sum.taken += more.taken;
    sum.predicted += more.predicted;
}

bool is_like(const RankWait& a, const RankWait& b) { return a.awaited == b.awaited; }
bool is_like(const PeerPath& a, const PeerPath& b) {
    return a.peer == b.peer && a.interface == b.interface;
}

template <typename Entry>
const Entry* find(const std::vector<Entry>& entries, const Entry& like) {
    const auto found =
        std::ranges::find_if(entries, [&](const Entry& entry) { return is_like(entry, like); });
    return found == entries.end() ? nullptr : &*found;
}

std::vector<RankWait> risen(std::vector<RankWait> now, const std::vector<RankWait>& before) {
    for (RankWait& wait : now)
        if (const RankWait* const known = find(before, wait)) wait.waited -= known->waited;
    std::erase_if(now, [](const RankWait& wait) { return wait.waited <= Duration::zero(); });
    return now;
}

/// Returns the counts of a path between two snapshots.
sys::PathCounters risen(const sys::PathCounters& now, const sys::PathCounters& before) {
    // Counters of a new connection begin at zero.
    if (now.sent < before.sent || now.resent < before.resent || now.busy < before.busy) return now;
    return {.sent = now.sent - before.sent,
            .resent = now.resent - before.resent,
            .round_trip = now.round_trip,
            .busy = now.busy - before.busy};
}

std::vector<PeerPath> risen(std::vector<PeerPath> now, const std::vector<PeerPath>& before) {
    for (PeerPath& path : now)
        if (const PeerPath* const known = find(before, path))
            path.counters = risen(path.counters, known->counters);
    return now;
}

Duration shorter(Duration a, Duration b) {
    if (a == Duration::zero() || b == Duration::zero()) return std::max(a, b);
    return std::min(a, b);
}

void add(RankWait& sum, const RankWait& later) { sum.waited += later.waited; }
void add(PeerPath& sum, const PeerPath& later) {
    sum.counters.sent += later.counters.sent;
    sum.counters.resent += later.counters.resent;
    sum.counters.busy += later.counters.busy;
    sum.counters.round_trip = shorter(sum.counters.round_trip, later.counters.round_trip);
}

template <typename Entry>
void add(std::vector<Entry>& sum, const std::vector<Entry>& later) {
    for (const Entry& entry : later) {
        const auto known =
            std::ranges::find_if(sum, [&](const Entry& each) { return is_like(each, entry); });
        if (known == sum.end())
            sum.push_back(entry);
        else
            add(*known, entry);
    }
}

template <typename Entry, typename Key>
void keep_greatest(std::vector<Entry>& entries, std::size_t most, Key key) {
    std::ranges::stable_sort(entries, std::greater{}, key);
    if (entries.size() > most) entries.resize(most);
}

}  // namespace

std::uint64_t calls_of(const UsageSnapshot& usage) {
    return usage.collectives[0].calls + usage.collectives[1].calls;
}

std::uint64_t operations_of(const UsageSnapshot& usage) {
    return calls_of(usage) + usage.messages.sent.calls + usage.messages.received.calls;
}

UsageSnapshot difference(const UsageSnapshot& now, const UsageSnapshot& before) {
    UsageSnapshot change = now;
    for (std::size_t path = 0; path < change.collectives.size(); ++path)
        subtract(change.collectives[path], before.collectives[path]);
    change.between -= before.between;
    change.waits = risen(now.waits, before.waits);
    change.messages.sent.calls -= before.messages.sent.calls;
    change.messages.sent.bytes -= before.messages.sent.bytes;
    change.messages.received.calls -= before.messages.received.calls;
    change.messages.received.bytes -= before.messages.received.bytes;
    change.messages.under_way -= before.messages.under_way;
    change.messages.waits = risen(now.messages.waits, before.messages.waits);
    change.paths = risen(now.paths, before.paths);
    // Threads that have ended take their times along.
    change.cpu.ran = std::max(now.cpu.ran - before.cpu.ran, Duration::zero());
    change.cpu.queued = std::max(now.cpu.queued - before.cpu.queued, Duration::zero());
    return change;
}

UsageSnapshot& operator+=(UsageSnapshot& sum, const UsageSnapshot& later) {
    for (std::size_t path = 0; path < sum.collectives.size(); ++path)
        add(sum.collectives[path], later.collectives[path]);
    sum.between += later.between;
    add(sum.waits, later.waits);
    sum.messages.sent.calls += later.messages.sent.calls;
    sum.messages.sent.bytes += later.messages.sent.bytes;
    sum.messages.received.calls += later.messages.received.calls;
    sum.messages.received.bytes += later.messages.received.bytes;
    sum.messages.under_way += later.messages.under_way;
    add(sum.messages.waits, later.messages.waits);
    add(sum.paths, later.paths);
    sum.cpu.ran += later.cpu.ran;
    sum.cpu.queued += later.cpu.queued;
    return sum;
}

void limit(UsageSnapshot& usage, std::size_t most) {
    keep_greatest(usage.waits, most, &RankWait::waited);
    keep_greatest(usage.messages.waits, most, &RankWait::waited);
    keep_greatest(usage.paths, most, [](const PeerPath& path) { return path.counters.busy; });
}

}  // namespace pccl::runtime
