// SPDX-License-Identifier: Apache-2.0
#include "csrc/runtime/flight/flight_recorder.h"

#include <cstring>
#include <string_view>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/collective/fingerprint.h"

namespace pccl::runtime {
namespace {

std::string direction_of(const FlightEntry& entry) {
    const std::string_view verb = entry.kind == FlightKind::kSend ? "send to " : "receive from ";
    const Rank peer = entry.message.peer;
    return concat(verb, peer == kNoRank ? "any rank" : concat("rank ", peer));
}

std::string others_of(const FlightEntry& entry) {
    return entry.calls > 1 ? concat(" and ", entry.calls - 1, " more") : "";
}

constexpr std::size_t kMostGroups = 1024;
constexpr auto kRelaxed = std::memory_order_relaxed;

}  // namespace

FlightRecorder& flight_recorder() {
    // It is never destroyed: operations may end while the process does.
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
    Said content{.group = group, .kind = FlightKind::kCollective, .calls = calls};
    static_assert(sizeof content.words == sizeof collective);
    std::memcpy(content.words.data(), &collective, sizeof collective);
    return write(content, now);
}

FlightRecorder::Ticket FlightRecorder::begin(std::uint32_t group, FlightKind kind,
                                             const FlightMessage& message, TimePoint now,
                                             std::size_t calls) {
    Said content{.group = group, .kind = kind, .calls = calls};
    static_assert(sizeof content.words >= sizeof message);
    std::memcpy(content.words.data(), &message, sizeof message);
    return write(content, now);
}

FlightRecorder::Ticket FlightRecorder::write(const Said& content, TimePoint now) {
    return ring_.add([&](Fields& fields) {
        fields.group.store(content.group, kRelaxed);
        fields.kind.store(content.kind, kRelaxed);
        fields.calls.store(static_cast<std::uint32_t>(content.calls), kRelaxed);
        for (std::size_t i = 0; i < content.words.size(); ++i)
            fields.words[i].store(content.words[i], kRelaxed);
        fields.issued.store(now, kRelaxed);
        fields.started.store({}, kRelaxed);
        fields.finished.store({}, kRelaxed);
        fields.outcome.store(StatusCode::kOk, kRelaxed);
        fields.blamed.store(kNoRank, kRelaxed);
    });
}

void FlightRecorder::started(Ticket ticket, TimePoint now) {
    if (Fields* const fields = ring_.find(ticket)) fields->started.store(now, kRelaxed);
}

void FlightRecorder::finished(Ticket ticket, const Status& outcome, TimePoint now) {
    Fields* const fields = ring_.find(ticket);
    if (fields == nullptr) return;
    fields->outcome.store(outcome.code(), kRelaxed);
    fields->blamed.store(outcome.peer(), kRelaxed);
    fields->finished.store(now, kRelaxed);
}

FlightEntry FlightRecorder::read(Ticket ticket, const Fields& fields) {
    FlightEntry entry{.ticket = ticket,
                      .group = fields.group.load(kRelaxed),
                      .kind = fields.kind.load(kRelaxed),
                      .calls = fields.calls.load(kRelaxed)};
    Words words{};
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = fields.words[i].load(kRelaxed);
    if (entry.kind == FlightKind::kCollective)
        std::memcpy(&entry.collective, words.data(), sizeof entry.collective);
    else
        std::memcpy(static_cast<void*>(&entry.message), words.data(), sizeof entry.message);
    entry.issued = fields.issued.load(kRelaxed);
    entry.started = fields.started.load(kRelaxed);
    entry.finished = fields.finished.load(kRelaxed);
    entry.outcome = fields.outcome.load(kRelaxed);
    entry.blamed = fields.blamed.load(kRelaxed);
    return entry;
}

std::vector<FlightEntry> FlightRecorder::entries() const { return ring_.all(&read); }

std::optional<FlightEntry> FlightRecorder::find(Ticket ticket) const {
    return ring_.read(ticket, &read);
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

std::shared_ptr<const FlightObserver> FlightRecorder::observer_of(std::string_view group,
                                                                  Rank rank) const {
    const std::lock_guard lock(mutex_);
    for (const FlightGroup& one : groups_)
        if (one.name == group && one.rank == rank)
            if (auto observer = one.observer.lock()) return observer;
    return nullptr;
}

std::vector<FlightWait> FlightRecorder::waits(std::string_view group, Rank rank) const {
    const auto observer = observer_of(group, rank);
    return observer == nullptr ? std::vector<FlightWait>() : observer->waits();
}

std::vector<FlightGroup> FlightRecorder::groups() const {
    const std::lock_guard lock(mutex_);
    return {groups_.begin(), groups_.end()};
}

std::string describe(const FlightEntry& entry) {
    if (entry.kind == FlightKind::kCollective) return pccl::describe(entry.collective);
    return concat(direction_of(entry), " (tag ", entry.message.tag, ", ", entry.message.bytes,
                  " bytes)");
}

std::string describe_launch(const FlightEntry& entry) {
    if (entry.kind == FlightKind::kCollective)
        return concat(describe_call(entry.collective), others_of(entry));
    return concat(direction_of(entry), " (", entry.message.bytes, " bytes)", others_of(entry));
}

}  // namespace pccl::runtime
