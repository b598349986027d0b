#include "csrc/comm/device/launch_log.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "csrc/base/text.h"
#include "csrc/comm/fingerprint.h"
#include "csrc/comm/flight_text.h"

namespace pccl::comm {
namespace {

constexpr std::size_t kMostCaptured = 1 << 14;
// Kernels write once a millisecond, those that share a GPU when it is their turn.
constexpr Duration kBetweenLooks = std::chrono::milliseconds(30);

abi::CollectiveHeader header_of(const Collective& collective, std::uint32_t sequence) {
    const KnownLengths lengths = known_lengths(collective);
    return {.magic = abi::kCollectiveMagic,
            .kind = static_cast<std::uint8_t>(collective.kind),
            .data_type = static_cast<std::uint8_t>(collective.type),
            .reduce_op = static_cast<std::uint8_t>(collective.op),
            .algorithm = 0,
            .root = static_cast<std::uint16_t>(collective.root),
            .sequence = sequence,
            .window = 0,
            .count = longest(collective),
            .lengths = is_per_pair(collective.kind) ? 0 : folded(lengths.digest),
            .history = 0};
}

bool is_of_messages(std::size_t phase) {
    return phase == static_cast<std::size_t>(abi::DevicePhase::kPosting) ||
           phase == static_cast<std::size_t>(abi::DevicePhase::kMessage);
}

}  // namespace

std::shared_ptr<LaunchLog> LaunchLog::open(FlightGroup group, Control control) {
    std::shared_ptr<LaunchLog> log(new LaunchLog(group.rank, std::move(control)));
    group.is_on_gpus = true;
    group.witness = log;
    log->group_ = flight_recorder().add_group(std::move(group));
    return log;
}

FlightTicket LaunchLog::begin(std::span<const Collective> collectives, bool is_captured) {
    const auto header = header_of(collectives.front(), ++sequence_);
    return keep(flight_recorder().begin(group_, header, system_clock().now(), collectives.size()),
                is_captured);
}

FlightTicket LaunchLog::begin(FlightKind kind, const FlightMessage& message, std::size_t calls,
                              bool is_captured) {
    return keep(flight_recorder().begin(group_, kind, message, system_clock().now(), calls),
                is_captured);
}

FlightTicket LaunchLog::keep(FlightTicket ticket, bool is_captured) {
    if (!is_captured) return ticket;
    const auto entry = flight_recorder().find(ticket);
    const std::lock_guard lock(mutex_);
    if (entry) captured_[ticket] = *entry;
    if (captured_.size() > kMostCaptured) captured_.erase(captured_.begin());
    return ticket;
}

void LaunchLog::end(FlightTicket ticket, const Status& outcome) {
    const TimePoint now = system_clock().now();
    if (outcome.is_ok()) return flight_recorder().started(ticket, now);
    flight_recorder().finished(ticket, outcome, now);
}

void LaunchLog::refuse(FlightTicket ticket, const Status& why) {
    const auto entry = flight_recorder().find(ticket);
    if (entry && entry->kind == FlightKind::kCollective) --sequence_;
    end(ticket, why);
}

std::string LaunchLog::operation(FlightTicket ticket) const {
    if (const auto entry = flight_recorder().find(ticket)) return describe_launch(*entry);
    const std::lock_guard lock(mutex_);
    const auto kept = captured_.find(ticket);
    return kept == captured_.end() ? concat("operation ", ticket, " of this process")
                                   : describe_launch(kept->second);
}

auto LaunchLog::waits_as_written() const -> Waits {
    Waits waits{};
    for (std::size_t phase = 0; phase < waits.size(); ++phase)
        for (std::size_t peer = 0; peer < abi::kMostDevices; ++peer) {
            abi::LongWait& wait = control_->waits[phase][peer];
            waits[phase][peer] = {std::atomic_ref(wait.ticket).load(),
                                  std::atomic_ref(wait.waited_ns).load()};
        }
    return waits;
}

auto LaunchLog::current_waits() const -> Waits {
    const Waits before = waits_as_written();
    const auto is_written = [](const auto& of_phase) {
        return std::ranges::any_of(of_phase, [](const auto& wait) { return wait.ticket != 0; });
    };
    if (std::ranges::none_of(before, is_written)) return {};
    system_clock().sleep_for(kBetweenLooks);
    Waits now = waits_as_written();
    for (std::size_t phase = 0; phase < now.size(); ++phase)
        for (std::size_t peer = 0; peer < abi::kMostDevices; ++peer)
            if (now[phase][peer].waited_ns == before[phase][peer].waited_ns) now[phase][peer] = {};
    return now;
}

FlightTicket LaunchLog::reached(const Waits& waits) const {
    FlightTicket first = 0;
    const auto consider = [&](FlightTicket ticket) {
        if (ticket == 0 || captured_.contains(ticket)) return;
        first = first == 0 ? ticket : std::min(first, ticket);
    };
    const std::lock_guard lock(mutex_);
    for (std::size_t phase = 0; phase < waits.size(); ++phase)
        if (!is_of_messages(phase))
            for (const abi::LongWait& wait : waits[phase]) consider(wait.ticket);
    abi::DeviceFault& fault = control_->fault;
    const bool is_fault = std::atomic_ref(fault.is_set).load(std::memory_order_acquire) != 0;
    if (is_fault && !is_of_messages(static_cast<std::size_t>(fault.phase))) consider(fault.ticket);
    return first;
}

FlightProgress LaunchLog::progress() const {
    const Waits waits = current_waits();
    FlightProgress progress{.reached = reached(waits)};
    for (Rank peer = 0; peer < abi::kMostDevices; ++peer) {
        FlightWait longest{.peer = peer};
        for (const auto& of_phase : waits) {
            const abi::LongWait& wait = of_phase[static_cast<std::size_t>(peer)];
            const std::chrono::nanoseconds waited(wait.waited_ns);
            if (wait.ticket == 0 || peer == rank_ || waited < longest.waited) continue;
            longest.ticket = wait.ticket;
            longest.waited = waited;
        }
        if (longest.ticket == 0) continue;
        longest.operation = operation(longest.ticket);
        progress.waits.push_back(std::move(longest));
    }
    const std::lock_guard lock(mutex_);
    for (const auto& [ticket, entry] : captured_) progress.captured.insert(ticket);
    return progress;
}

}  // namespace pccl::comm
