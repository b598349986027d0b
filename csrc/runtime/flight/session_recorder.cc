// SPDX-License-Identifier: Apache-2.0
#include "csrc/runtime/flight/session_recorder.h"

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "csrc/base/text/text.h"

namespace pccl::runtime {

using nlohmann::json;
namespace {

using Pairs = std::map<std::uint32_t, SessionPair>;

std::string_view to_string(SessionEventKind kind) {
    constexpr std::array<std::string_view, 4> kNames{"connected", "lost", "displaced", "refused"};
    return kNames[static_cast<std::size_t>(kind)];
}

json event_json(const SessionEvent& event) {
    json text{{"session", event.session},
              {"event", to_string(event.kind)},
              {"at_ns", event.at.time_since_epoch().count()}};
    if (!event.peer.empty()) text["peer"] = event.peer;
    if (!event.text.empty()) text["text"] = event.text;
    if (event.times > 1) text["times"] = event.times;
    return text;
}

std::string_view transfer_state(const SessionTransfer& transfer) {
    if (transfer.ended == TimePoint{}) return "posted";
    return transfer.outcome == StatusCode::kOk ? "completed" : "failed";
}

json transfer_json(const SessionTransfer& transfer, const Pairs& pairs) {
    const bool has_ended = transfer.ended != TimePoint{};
    json text{{"number", transfer.number},
              {"operation", transfer.writes ? "write" : "read"},
              {"bytes", transfer.bytes},
              {"state", transfer_state(transfer)},
              {"posted_ns", transfer.posted.time_since_epoch().count()}};
    if (const auto pair = pairs.find(transfer.pair); pair != pairs.end()) {
        text["session"] = pair->second.session;
        text["peer"] = pair->second.peer;
    }
    text["ended_ns"] = has_ended ? json(transfer.ended.time_since_epoch().count()) : json();
    if (!transfer.path.kind.empty())
        text["path"] = concat(transfer.path.kind, ", ", transfer.path.how);
    if (transfer.outcome != StatusCode::kOk) text["error"] = to_string(transfer.outcome);
    return text;
}

constexpr auto kUnordered = std::memory_order_relaxed;

/// Accepts a literal or null.
std::string_view literal(const char* text) {
    return text == nullptr ? std::string_view() : std::string_view(text);
}

bool is_again(const SessionEvent& last, const SessionEvent& next) {
    return next.kind == SessionEventKind::kRefused && last.kind == next.kind &&
           last.session == next.session;
}

}  // namespace

SessionRecorder& session_recorder() {
    // It is never destroyed: transfers may end while the process does.
    static auto* const recorder = new SessionRecorder;
    return *recorder;
}

std::uint32_t SessionRecorder::add_pair(std::string session, std::string peer) {
    const std::lock_guard lock(mutex_);
    pairs_.push_back({++last_pair_, std::move(session), std::move(peer)});
    if (pairs_.size() > kPairs) pairs_.pop_front();
    return last_pair_;
}

void SessionRecorder::add_event(SessionEvent event) {
    const std::lock_guard lock(mutex_);
    if (!events_.empty() && is_again(events_.back(), event)) {
        event.times += events_.back().times;
        events_.pop_back();
    }
    events_.push_back(std::move(event));
    if (events_.size() > kEvents) events_.pop_front();
}

std::uint64_t SessionRecorder::add(const SessionTransfer& transfer) {
    return ring_.add([&transfer](TransferFields& fields) {
        fields.bytes.store(transfer.bytes, kUnordered);
        fields.pair.store(transfer.pair, kUnordered);
        fields.writes.store(transfer.writes, kUnordered);
        fields.outcome.store(transfer.outcome, kUnordered);
        fields.posted.store(transfer.posted, kUnordered);
        fields.ended.store(transfer.ended, kUnordered);
        fields.kind.store(transfer.path.kind.data(), kUnordered);
        fields.how.store(transfer.path.how.data(), kUnordered);
    });
}

void SessionRecorder::ended(std::uint64_t number, const Status& outcome, const SessionPath& path,
                            TimePoint now) {
    TransferFields* const fields = ring_.find(number);
    if (fields == nullptr) return;
    fields->outcome.store(outcome.code(), kUnordered);
    fields->kind.store(path.kind.data(), kUnordered);
    fields->how.store(path.how.data(), kUnordered);
    fields->ended.store(now, kUnordered);
}

SessionTransfer SessionRecorder::read(std::uint64_t number, const TransferFields& fields) {
    return {.number = number,
            .pair = fields.pair.load(kUnordered),
            .writes = fields.writes.load(kUnordered),
            .bytes = fields.bytes.load(kUnordered),
            .posted = fields.posted.load(kUnordered),
            .ended = fields.ended.load(kUnordered),
            .outcome = fields.outcome.load(kUnordered),
            .path = {.kind = literal(fields.kind.load(kUnordered)),
                     .how = literal(fields.how.load(kUnordered))}};
}

std::vector<SessionTransfer> SessionRecorder::transfers() const { return ring_.all(&read); }

std::vector<SessionEvent> SessionRecorder::events() const {
    const std::lock_guard lock(mutex_);
    return {events_.begin(), events_.end()};
}

std::vector<SessionPair> SessionRecorder::pairs() const {
    const std::lock_guard lock(mutex_);
    return {pairs_.begin(), pairs_.end()};
}

json json_of(const SessionRecorder& recorder) {
    Pairs pairs;
    for (SessionPair& each : recorder.pairs()) pairs.emplace(each.id, std::move(each));
    json text{{"events", json::array()}, {"transfers", json::array()}};
    for (const SessionEvent& event : recorder.events()) text["events"].push_back(event_json(event));
    for (const SessionTransfer& transfer : recorder.transfers())
        text["transfers"].push_back(transfer_json(transfer, pairs));
    return text;
}

}  // namespace pccl::runtime
