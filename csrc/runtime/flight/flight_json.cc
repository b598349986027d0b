// SPDX-License-Identifier: Apache-2.0
#include "csrc/runtime/flight/flight_json.h"

#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/collective/fingerprint.h"
#include "csrc/runtime/flight/flight_recorder.h"
#include "csrc/runtime/flight/usage_history.h"
#include "csrc/sys/cpu/cpu_times.h"
#include "csrc/sys/host.h"

namespace pccl::runtime {

using nlohmann::json;

namespace {

/// Returns null for a point that was not reached.
json time_of(TimePoint point) {
    if (point == TimePoint{}) return nullptr;
    return point.time_since_epoch().count();
}

const char* state_of(const FlightEntry& entry) {
    if (entry.finished == TimePoint{}) return entry.started == TimePoint{} ? "queued" : "started";
    return entry.outcome == StatusCode::kOk ? "completed" : "failed";
}

/// Returns whether a call on a GPU was refused, and so has no number in its group.
bool is_refused(const FlightEntry& entry) {
    return entry.outcome == StatusCode::kInvalidArgument ||
           entry.outcome == StatusCode::kUnsupported;
}

/// Returns the state of a launch on a GPU, where collectives run one after the other.
const char* state_of(const FlightEntry& entry, const FlightProgress& progress) {
    if (is_refused(entry)) return "refused";
    const bool is_launched = entry.finished == TimePoint{} && entry.started != TimePoint{};
    if (!is_launched) return state_of(entry);
    if (progress.captured.contains(entry.ticket)) return "captured";
    const FlightTicket reached = progress.reached;
    if (entry.kind != FlightKind::kCollective || reached == 0) return "launched";
    if (entry.ticket == reached) return "started";
    return entry.ticket < reached ? "completed" : "queued";
}

/// Returns the fields of the call.
json call_of(const FlightEntry& entry) {
    if (entry.kind != FlightKind::kCollective)
        return {{"kind", entry.kind == FlightKind::kSend ? "send" : "receive"},
                {"peer", entry.message.peer},
                {"tag", entry.message.tag},
                {"bytes", entry.message.bytes},
                {"calls", entry.calls}};
    const CallFields call = fields_of(entry.collective);
    json text{{"kind", call.collective}, {"calls", entry.calls}};
    if (!call.type.empty()) {
        text["type"] = call.type;
        text["count"] = call.count;
        text["element_bytes"] = size_of(static_cast<DataType>(entry.collective.data_type));
    }
    if (!call.op.empty()) text["op"] = call.op;
    if (call.root != kNoRank) text["root"] = call.root;
    return text;
}

/// Returns the members' ranks in the whole job; those of a job's first group are its own ranks.
std::vector<std::uint64_t> global_ranks_of(const FlightGroup& group) {
    if (!group.global_ranks.empty()) return group.global_ranks;
    std::vector<std::uint64_t> ranks(static_cast<std::size_t>(group.size));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
}

double seconds_of(Duration duration) { return std::chrono::duration<double>(duration).count(); }

const char* word_of(Awaited::Act act) {
    if (act == Awaited::Act::kJoin) return "join";
    return act == Awaited::Act::kSend ? "send" : "receive";
}

json json_of(const sys::CpuTimes& times) {
    return {{"run_s", seconds_of(times.ran)}, {"queued_s", seconds_of(times.queued)}};
}

json json_of(const std::vector<RankWait>& waits) {
    json list = json::array();
    for (const RankWait& wait : waits)
        list.push_back({{"rank", wait.awaited.rank},
                        {"for", word_of(wait.awaited.act)},
                        {"seconds", seconds_of(wait.waited)}});
    return list;
}

json json_of(const CollectiveCounts& counts) {
    return {{"calls", counts.calls},
            {"bytes", counts.bytes},
            {"seconds", seconds_of(counts.taken)},
            {"predicted_s", seconds_of(counts.predicted)}};
}

json json_of(const MessageTotals& totals) {
    return {{"calls", totals.calls}, {"bytes", totals.bytes}};
}

json json_of(const MessageUsage& messages) {
    return {{"sent", json_of(messages.sent)},
            {"received", json_of(messages.received)},
            {"seconds", seconds_of(messages.under_way)},
            {"waits", json_of(messages.waits)}};
}

json json_of(const PeerPath& path) {
    return {{"peer", path.peer},
            {"interface", path.interface},
            {"bytes", path.counters.sent},
            {"resent", path.counters.resent},
            {"round_trip_s", seconds_of(path.counters.round_trip)},
            {"busy_s", seconds_of(path.counters.busy)}};
}

json json_of(const LaunchCounts& counts) {
    return {{"calls", counts.calls},
            {"bytes", counts.bytes},
            {"messages", counts.messages},
            {"sent_bytes", counts.sent},
            {"received_bytes", counts.received},
            {"captured", counts.captured},
            {"launch_s", seconds_of(counts.launching)}};
}

json json_of(const FlightWait& wait) {
    return {{"ticket", wait.ticket},
            {"operation", wait.operation},
            {"peer", wait.peer},
            {"seconds", seconds_of(wait.waited)}};
}

}  // namespace

json flight_head() {
    return {{"version", 1},
            {"host", sys::host_name()},
            {"pid", ::getpid()},
            {"wall_ms", wall_clock_ms()},
            {"steady_ns", system_clock().now().time_since_epoch().count()}};
}

json json_of_cpu_times() { return json_of(sys::cpu_times()); }

json json_of(const UsageSnapshot& usage) {
    json report{{"between_s", seconds_of(usage.between)},
                {"waits", json_of(usage.waits)},
                {"messages", json_of(usage.messages)},
                {"paths", json::array()}};
    for (const UsedPath path : {UsedPath::kSharedMemory, UsedPath::kLinks})
        report[path == UsedPath::kLinks ? "links" : "shm"] =
            json_of(usage.collectives[static_cast<std::size_t>(path)]);
    for (const PeerPath& path : usage.paths) report["paths"].push_back(json_of(path));
    return report;
}

json json_of(const UsageWindow& window) {
    json usage = json_of(window.usage);
    for (const char* const path : {"shm", "links"})
        if (usage[path]["calls"] == 0) usage.erase(path);
    const MessageUsage& messages = window.usage.messages;
    if (messages.sent.calls + messages.received.calls == 0 && messages.waits.empty())
        usage.erase("messages");
    return {{"begin_s", window.begin.count()},
            {"length_s", window.length.count()},
            {"cpu", json_of(window.usage.cpu)},
            {"usage", usage}};
}

ProgressOnGpus progress_of(std::span<const FlightGroup> groups) {
    ProgressOnGpus known;
    for (const FlightGroup& group : groups) {
        if (!group.is_on_gpus) continue;
        const auto observer = group.observer.lock();
        known[group.id] = observer == nullptr ? FlightProgress{} : observer->progress();
    }
    return known;
}

json json_of(const FlightGroup& group, const ProgressOnGpus& on_gpus) {
    json text{{"id", group.id},
              {"name", group.name},
              {"rank", group.rank},
              {"size", group.size},
              {"global_ranks", global_ranks_of(group)},
              {"device", group.is_on_gpus ? "cuda" : "cpu"}};
    if (!group.is_on_gpus) return text;
    if (const auto observer = group.observer.lock()) text["launches"] = json_of(observer->counts());
    text["waits"] = json::array();
    for (const FlightWait& wait : on_gpus.at(group.id).waits)
        text["waits"].push_back(json_of(wait));
    return text;
}

json json_of(const FlightEntry& entry, const ProgressOnGpus& on_gpus) {
    const auto launched = on_gpus.find(entry.group);
    const bool is_on_gpu = launched != on_gpus.end();
    json text{{"ticket", entry.ticket},
              {"group", entry.group},
              {"state", is_on_gpu ? state_of(entry, launched->second) : state_of(entry)},
              {"operation", is_on_gpu ? describe_launch(entry) : describe(entry)},
              {"issued_ns", time_of(entry.issued)},
              {"started_ns", time_of(entry.started)},
              {"finished_ns", time_of(entry.finished)}};
    text.update(call_of(entry));
    if (entry.kind == FlightKind::kCollective && (!is_on_gpu || !is_refused(entry)))
        text["sequence"] = entry.collective.sequence;
    if (entry.outcome != StatusCode::kOk) text["error"] = to_string(entry.outcome);
    if (entry.blamed != kNoRank) text["blamed"] = entry.blamed;
    return text;
}

}  // namespace pccl::runtime
