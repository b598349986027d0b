// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/launch/launch_log.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>

#include "csrc/base/text/text.h"
#include "csrc/collective/fingerprint.h"
#include "csrc/runtime/flight/flight_recorder.h"

namespace pccl::device {
namespace {

constexpr std::size_t kMostCaptured = 1 << 14;
// Kernels write once a millisecond; time-sliced ones write in their time slice.
constexpr Duration kBetweenLooks = std::chrono::milliseconds(3);
constexpr int kMostLooks = 10;

/// Returns whether the entry was not renewed.
bool is_alike(const abi::LongWait& before, const abi::LongWait& now) {
    return now.ticket != 0 && now.ticket == before.ticket && now.waited_ns == before.waited_ns;
}

bool is_collective(runtime::FlightTicket ticket) {
    const auto entry = runtime::flight_recorder().find(ticket);
    return entry && entry->kind == runtime::FlightKind::kCollective;
}

}  // namespace

std::shared_ptr<LaunchLog> LaunchLog::open(runtime::FlightGroup group, Control control) {
    std::shared_ptr<LaunchLog> log(new LaunchLog(group.rank, std::move(control)));
    group.is_on_gpus = true;
    group.observer = log;
    log->group_ = runtime::flight_recorder().add_group(std::move(group));
    return log;
}

runtime::FlightTicket LaunchLog::begin(std::span<const Collective> collectives, bool is_captured) {
    last_ = runtime::FlightKind::kCollective;
    call_ = header_of(signature_of(collectives.front()));
    call_.count = longest(collectives.front());
    call_.sequence = ++sequence_;
    std::size_t bytes = 0;
    for (const Collective& collective : collectives)
        bytes += longest(collective) * size_of(collective.type);
    const TimePoint now = system_clock().now();
    return note(runtime::flight_recorder().begin(group_, call_, now, collectives.size()), now,
                is_captured, {.calls = collectives.size(), .bytes = bytes});
}

runtime::FlightTicket LaunchLog::begin(const Messages& messages, bool is_captured) {
    last_ = messages.kind;
    const TimePoint now = system_clock().now();
    return note(runtime::flight_recorder().begin(group_, messages.kind, messages.first, now,
                                                 messages.count),
                now, is_captured,
                {.messages = messages.count, .sent = messages.sent, .received = messages.received});
}

runtime::FlightTicket LaunchLog::note(runtime::FlightTicket ticket, TimePoint now, bool is_captured,
                                      const runtime::LaunchCounts& counts) {
    begun_ = now;
    begun_counts_ =
        is_captured ? runtime::LaunchCounts{.captured = counts.calls + counts.messages} : counts;
    if (is_captured) keep(ticket);
    return ticket;
}

void LaunchLog::keep(runtime::FlightTicket ticket) {
    const auto entry = runtime::flight_recorder().find(ticket);
    const std::lock_guard lock(mutex_);
    if (entry) captured_[ticket] = *entry;
    if (captured_.size() > kMostCaptured) captured_.erase(captured_.begin());
}

void LaunchLog::count(TimePoint now) {
    const std::lock_guard lock(mutex_);
    counts_.calls += begun_counts_.calls;
    counts_.bytes += begun_counts_.bytes;
    counts_.messages += begun_counts_.messages;
    counts_.sent += begun_counts_.sent;
    counts_.received += begun_counts_.received;
    counts_.captured += begun_counts_.captured;
    counts_.launching += now - begun_;
}

runtime::LaunchCounts LaunchLog::counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
}

void LaunchLog::end(runtime::FlightTicket ticket, const Status& outcome) {
    const TimePoint now = system_clock().now();
    if (outcome.is_ok()) {
        count(now);
        return runtime::flight_recorder().started(ticket, now);
    }
    runtime::flight_recorder().finished(ticket, outcome, now);
}

void LaunchLog::refuse(runtime::FlightTicket ticket, const Status& why) {
    if (last_ == runtime::FlightKind::kCollective) --sequence_;
    end(ticket, why);
}

std::string LaunchLog::operation(runtime::FlightTicket ticket) const {
    if (const auto entry = runtime::flight_recorder().find(ticket)) return describe_launch(*entry);
    const std::lock_guard lock(mutex_);
    const auto kept = captured_.find(ticket);
    return kept == captured_.end() ? concat("operation ", ticket, " of this process")
                                   : describe_launch(kept->second);
}

abi::LongWait& LaunchLog::written(std::size_t index) const {
    return control_->waits[index / abi::kMostDevices][index % abi::kMostDevices];
}

LaunchLog::Waits LaunchLog::waits_as_written() const {
    Waits waits{};
    for (std::size_t i = 0; i < waits.size(); ++i) {
        abi::LongWait& wait = written(i);
        waits[i] = {std::atomic_ref(wait.ticket).load(), std::atomic_ref(wait.waited_ns).load()};
    }
    return waits;
}

LaunchLog::Waits LaunchLog::current_waits() const {
    const Waits before = waits_as_written();
    Waits now = before;
    const auto are_renewed = [&] { return std::ranges::equal(before, now, std::not_fn(is_alike)); };
    for (int look = 0; look < kMostLooks && !are_renewed(); ++look) {
        system_clock().sleep_for(kBetweenLooks);
        now = waits_as_written();
    }
    for (std::size_t i = 0; i < now.size(); ++i) {
        if (!is_alike(before[i], now[i])) continue;
        now[i] = {};
        std::atomic_ref(written(i).ticket).store(0);
    }
    return now;
}

runtime::FlightTicket LaunchLog::reached(const Waits& waits) const {
    runtime::FlightTicket first = 0;
    const std::lock_guard lock(mutex_);
    const auto consider = [&](runtime::FlightTicket ticket) {
        if (!is_collective(ticket) || captured_.contains(ticket)) return;
        first = first == 0 ? ticket : std::min(first, ticket);
    };
    for (const abi::LongWait& wait : waits) consider(wait.ticket);
    const std::atomic_ref has_given_up(control_->has_given_up);
    if (has_given_up.load(std::memory_order_acquire) != 0) consider(control_->fault.ticket);
    return first;
}

runtime::FlightWait LaunchLog::longest_for(Rank peer, const Waits& waits) const {
    runtime::FlightWait longest{.peer = peer};
    for (std::size_t i = static_cast<std::size_t>(peer); i < waits.size(); i += abi::kMostDevices) {
        const std::chrono::nanoseconds waited(waits[i].waited_ns);
        if (waits[i].ticket == 0 || waited < longest.waited) continue;
        longest.ticket = waits[i].ticket;
        longest.waited = waited;
    }
    return longest;
}

std::vector<runtime::FlightWait> LaunchLog::by_peer(const Waits& waits) const {
    std::vector<runtime::FlightWait> longest;
    for (Rank peer = 0; peer < abi::kMostDevices; ++peer) {
        runtime::FlightWait wait = longest_for(peer, waits);
        if (wait.ticket == 0 || peer == rank_) continue;
        wait.operation = operation(wait.ticket);
        longest.push_back(std::move(wait));
    }
    return longest;
}

runtime::FlightProgress LaunchLog::progress() const {
    const Waits waits = current_waits();
    runtime::FlightProgress progress{.waits = by_peer(waits), .reached = reached(waits)};
    const std::lock_guard lock(mutex_);
    for (const auto& [ticket, entry] : captured_) progress.captured.insert(ticket);
    return progress;
}

}  // namespace pccl::device
