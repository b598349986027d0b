// SPDX-License-Identifier: Apache-2.0
#include "csrc/runtime/flight/session_json.h"

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "csrc/base/text.h"

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

}  // namespace

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
