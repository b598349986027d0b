#include "csrc/runtime/flight/flight_recorder.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace pccl::runtime {
namespace {

constexpr std::size_t kMostGroups = 1024;
constexpr auto kRelaxed = std::memory_order_relaxed;

}  // namespace

FlightRecorder& flight_recorder() {
    // Never destroyed: operations may end while the process does.
    static auto* const recorder = new FlightRecorder;
    return *recorder;
}

std::uint32_t FlightRecorder::add_group(FlightGroup group) {
    const std::lock_guard lock(mutex_);
    group.id = ++last_group_;
    groups_.push_back(std::move(group));
    if (groups_.size() > kMostGroups) groups_.pop_front();
    return last_group_;
}

FlightRecorder::Ticket FlightRecorder::begin(std::uint32_t group,
                                             const abi::CollectiveHeader& collective, TimePoint now,
                                             std::size_t calls) {
    Said said{.group = group, .kind = FlightKind::kCollective, .calls = calls};
    static_assert(sizeof said.words == sizeof collective);
    std::memcpy(said.words.data(), &collective, sizeof collective);
    return write(said, now);
}

FlightRecorder::Ticket FlightRecorder::begin(std::uint32_t group, FlightKind kind,
                                             const FlightMessage& message, TimePoint now,
                                             std::size_t calls) {
    Said said{.group = group, .kind = kind, .calls = calls};
    static_assert(sizeof said.words >= sizeof message);
    std::memcpy(said.words.data(), &message, sizeof message);
    return write(said, now);
}

FlightRecorder::Ticket FlightRecorder::write(const Said& said, TimePoint now) {
    const Ticket ticket = last_.fetch_add(1, kRelaxed) + 1;
    Slot& slot = slots_[ticket % kEntries];
    slot.ticket.store(0, kRelaxed);
    std::atomic_thread_fence(std::memory_order_release);
    slot.group.store(said.group, kRelaxed);
    slot.kind.store(said.kind, kRelaxed);
    slot.calls.store(static_cast<std::uint32_t>(said.calls), kRelaxed);
    for (std::size_t i = 0; i < said.words.size(); ++i)
        slot.words[i].store(said.words[i], kRelaxed);
    slot.issued.store(now, kRelaxed);
    slot.started.store({}, kRelaxed);
    slot.finished.store({}, kRelaxed);
    slot.outcome.store(StatusCode::kOk, kRelaxed);
    slot.blamed.store(kNoRank, kRelaxed);
    slot.ticket.store(ticket, std::memory_order_release);
    return ticket;
}

/// Null where a later operation has taken the place.
FlightRecorder::Slot* FlightRecorder::slot_of(Ticket ticket) {
    Slot& slot = slots_[ticket % kEntries];
    return ticket != 0 && slot.ticket.load(kRelaxed) == ticket ? &slot : nullptr;
}

void FlightRecorder::started(Ticket ticket, TimePoint now) {
    if (Slot* const slot = slot_of(ticket)) slot->started.store(now, kRelaxed);
}

void FlightRecorder::finished(Ticket ticket, const Status& outcome, TimePoint now) {
    Slot* const slot = slot_of(ticket);
    if (slot == nullptr) return;
    slot->outcome.store(outcome.code(), kRelaxed);
    slot->blamed.store(outcome.peer(), kRelaxed);
    slot->finished.store(now, kRelaxed);
}

FlightEntry FlightRecorder::read(const Slot& slot) {
    FlightEntry entry{.ticket = slot.ticket.load(std::memory_order_acquire),
                      .group = slot.group.load(kRelaxed),
                      .kind = slot.kind.load(kRelaxed),
                      .calls = slot.calls.load(kRelaxed)};
    Words words{};
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = slot.words[i].load(kRelaxed);
    if (entry.kind == FlightKind::kCollective)
        std::memcpy(&entry.collective, words.data(), sizeof entry.collective);
    else
        std::memcpy(static_cast<void*>(&entry.message), words.data(), sizeof entry.message);
    entry.issued = slot.issued.load(kRelaxed);
    entry.started = slot.started.load(kRelaxed);
    entry.finished = slot.finished.load(kRelaxed);
    entry.outcome = slot.outcome.load(kRelaxed);
    entry.blamed = slot.blamed.load(kRelaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    // Overwritten meanwhile: no entry.
    if (slot.ticket.load(kRelaxed) != entry.ticket) entry.ticket = 0;
    return entry;
}

std::vector<FlightEntry> FlightRecorder::entries() const {
    std::vector<FlightEntry> entries;
    for (const Slot& slot : slots_)
        if (FlightEntry entry = read(slot); entry.ticket != 0) entries.push_back(entry);
    std::ranges::sort(entries, {}, &FlightEntry::ticket);
    return entries;
}

std::optional<FlightEntry> FlightRecorder::find(Ticket ticket) const {
    const FlightEntry entry = read(slots_[ticket % kEntries]);
    return ticket != 0 && entry.ticket == ticket ? std::optional(entry) : std::nullopt;
}

std::vector<abi::CollectiveHeader> FlightRecorder::recent(std::uint32_t group,
                                                          std::size_t count) const {
    std::vector<abi::CollectiveHeader> headers;
    for (const FlightEntry& entry : entries())
        if (entry.group == group && entry.kind == FlightKind::kCollective)
            headers.push_back(entry.collective);
    if (headers.size() > count)
        headers.erase(headers.begin(), headers.end() - static_cast<std::ptrdiff_t>(count));
    return headers;
}

std::shared_ptr<const FlightWitness> FlightRecorder::witness_of(std::string_view group,
                                                                Rank rank) const {
    const std::lock_guard lock(mutex_);
    for (const FlightGroup& one : groups_)
        if (one.name == group && one.rank == rank)
            if (auto witness = one.witness.lock()) return witness;
    return nullptr;
}

std::vector<FlightWait> FlightRecorder::waits(std::string_view group, Rank rank) const {
    const auto witness = witness_of(group, rank);
    return witness == nullptr ? std::vector<FlightWait>() : witness->waits();
}

std::vector<FlightGroup> FlightRecorder::groups() const {
    const std::lock_guard lock(mutex_);
    return {groups_.begin(), groups_.end()};
}

}  // namespace pccl::runtime
