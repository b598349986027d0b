// SPDX-License-Identifier: Apache-2.0
#include "csrc/runtime/status_report.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/bootstrap/secret_file.h"
#include "csrc/runtime/flight/flight_json.h"
#include "csrc/runtime/flight/flight_recorder.h"
#include "csrc/runtime/participant.h"
#include "csrc/transport/control/inquiry.h"

namespace pccl::runtime {
namespace {

using nlohmann::json;

// Limits with which the report of one group fits an answer.
constexpr std::size_t kMostOpen = 4;
constexpr std::size_t kMostLast = 2;
constexpr std::size_t kMostWaits = 4;
constexpr std::size_t kMostAwaited = 64;
constexpr std::size_t kMostUsageWaits = 16;
constexpr std::size_t kLongestName = 200;
constexpr std::size_t kLongestText = 240;

// Limits with which the same holds for a part of the members.
constexpr std::size_t kMostMembers = 8;
constexpr std::size_t kMostDoors = 3;

std::string text_of(const json& report) {
    return report.dump(-1, ' ', true, json::error_handler_t::replace);
}

void shorten(json& text, std::size_t longest) {
    text = text.get_ref<const std::string&>().substr(0, longest);
}

std::string key_of(const transport::GroupId& group) {
    constexpr std::string_view kHex = "0123456789abcdef";
    std::string key;
    for (const std::uint8_t byte : group) {
        key += kHex[byte >> 4];
        key += kHex[byte & 15];
    }
    return key;
}

using Seen = std::map<std::uint32_t, const VisibleGroup*>;  // by FlightGroup::id

Seen seen_of(std::span<const std::shared_ptr<Participant>> participants) {
    Seen seen;
    for (const auto& participant : participants)
        if (const VisibleGroup* const group = participant->visible())
            seen[group->flight_group()] = group;
    return seen;
}

/// Returns the groups that still exist, from that id on.
std::vector<FlightGroup> living(const Seen& seen, std::uint32_t first) {
    std::vector<FlightGroup> groups = flight_recorder().groups();
    std::erase_if(groups, [&](const FlightGroup& group) {
        const bool is_there = seen.contains(group.id) || !group.observer.expired();
        return !is_there || group.id < first;
    });
    return groups;
}

/// Returns the unfinished operations of a group, those in which its GPU waits, and its last
/// collectives.
std::vector<FlightEntry> relevant_entries(const FlightGroup& group, const FlightProgress& progress,
                                          std::vector<FlightEntry> entries) {
    std::erase_if(entries, [&](const FlightEntry& entry) { return entry.group != group.id; });
    std::set<FlightTicket> kept;
    for (const FlightWait& wait : progress.waits) kept.insert(wait.ticket);
    std::size_t last = 0;
    for (auto entry = entries.rbegin(); entry != entries.rend() && last < kMostLast; ++entry)
        if (entry->kind == FlightKind::kCollective && kept.insert(entry->ticket).second) ++last;
    std::size_t open = 0;
    for (const FlightEntry& entry : entries)
        if (!group.is_on_gpus && entry.finished == TimePoint{} && open++ < kMostOpen)
            kept.insert(entry.ticket);
    std::erase_if(entries, [&](const FlightEntry& entry) { return !kept.contains(entry.ticket); });
    return entries;
}

void add_standing(json& report, const VisibleGroup& group) {
    VisibleGroup::Standing standing = group.standing();
    if (standing.awaited.size() > kMostAwaited) standing.awaited.resize(kMostAwaited);
    report["key"] = key_of(group.id());
    report["awaited"] = standing.awaited;
    report["whole"] = standing.is_whole;
    report["usage"] = json_of(group.usage(kMostUsageWaits));
    if (!standing.broken.is_ok())
        report["broken"] = standing.broken.message().substr(0, kLongestText);
}

struct GroupReport {
    json group;
    json entries = json::array();
};

GroupReport report_on(FlightGroup group, const Seen& seen,
                      const std::vector<FlightEntry>& entries) {
    group.global_ranks.clear();
    ProgressOnGpus on_gpus = progress_of({&group, 1});
    if (group.is_on_gpus) {
        auto& waits = on_gpus.at(group.id).waits;
        if (waits.size() > kMostWaits) waits.resize(kMostWaits);
    }
    GroupReport report{.group = json_of(group, on_gpus)};
    report.group.erase("global_ranks");
    shorten(report.group["name"], kLongestName);
    if (report.group.contains("waits"))
        for (json& wait : report.group["waits"]) shorten(wait["operation"], kLongestText);
    if (const auto found = seen.find(group.id); found != seen.end())
        add_standing(report.group, *found->second);
    const FlightProgress& progress = group.is_on_gpus ? on_gpus.at(group.id) : FlightProgress{};
    for (const FlightEntry& entry : relevant_entries(group, progress, entries)) {
        report.entries.push_back(json_of(entry, on_gpus));
        shorten(report.entries.back()["operation"], kLongestText);
    }
    return report;
}

std::string report_groups(const Seen& seen, std::uint32_t first) {
    json report = flight_head();
    report["cpu"] = json_of_cpu_times();
    report["groups"] = json::array();
    report["entries"] = json::array();
    report["next"] = nullptr;
    const std::vector<FlightEntry> entries = flight_recorder().entries();
    for (const FlightGroup& group : living(seen, first)) {
        json longer = report;
        GroupReport next = report_on(group, seen, entries);
        longer["groups"].push_back(std::move(next.group));
        for (json& entry : next.entries) longer["entries"].push_back(std::move(entry));
        const bool is_first = report["groups"].empty();
        // Leaves room for "next".
        if (!is_first && text_of(longer).size() + kLongestName > transport::kLongestAnswer) {
            report["next"] = group.id;
            break;
        }
        report = std::move(longer);
    }
    return text_of(report);
}

json json_of(const bootstrap::Endpoint& member) {
    std::vector<std::string> doors = member.address.control.doors;
    if (doors.size() > kMostDoors) doors.resize(kMostDoors);
    return {{"rank", member.rank},
            {"host", member.host.substr(0, kLongestName)},
            {"pid", member.pid},
            {"doors", doors}};
}

/// Returns null where this process is in no such group.
const VisibleGroup* group_with(const transport::GroupId& id, const Seen& seen) {
    const auto found =
        std::ranges::find_if(seen, [&](const auto& group) { return group.second->id() == id; });
    return found == seen.end() ? nullptr : found->second;
}

std::string report_members(const VisibleGroup* group, std::uint32_t first) {
    json report{{"members", json::array()}, {"next", nullptr}};
    if (group == nullptr) return text_of(report);
    const auto members = group->members(static_cast<Rank>(first), kMostMembers);
    for (const bootstrap::Endpoint& member : members) report["members"].push_back(json_of(member));
    if (members.size() == kMostMembers) report["next"] = first + kMostMembers;
    return text_of(report);
}

std::string report_history(const VisibleGroup* group, std::uint32_t first) {
    json report{{"windows", json::array()}, {"next", nullptr}};
    if (group == nullptr) return text_of(report);
    std::size_t bytes = text_of(report).size();
    for (const UsageWindow& window : group->history(std::chrono::seconds(first))) {
        json next = json_of(window);
        bytes += text_of(next).size() + 1;
        // Leaves room for "next".
        if (!report["windows"].empty() && bytes + kLongestName > transport::kLongestAnswer) {
            report["next"] = window.begin.count();
            break;
        }
        report["windows"].push_back(std::move(next));
    }
    return text_of(report);
}

}  // namespace

std::string status_report(std::span<const std::shared_ptr<Participant>> participants,
                          const transport::StatusQuestion& question) {
    const Seen seen = seen_of(participants);
    if (question.group == transport::GroupId{}) return report_groups(seen, question.first);
    const VisibleGroup* const group = group_with(question.group, seen);
    const bool is_history = question.subject == transport::StatusSubject::kHistory;
    return is_history ? report_history(group, question.first)
                      : report_members(group, question.first);
}

Result<transport::GroupId> group_of(const std::string& bytes) {
    transport::GroupId group{};
    if (!bytes.empty() && bytes.size() != group.size())
        return Status::invalid_argument(
            concat("a group's key has ", group.size(), " bytes, not ", bytes.size()));
    std::ranges::copy(bytes, group.begin());
    return group;
}

Result<std::string> request_status(const std::string& door,
                                   const transport::StatusQuestion& question, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const sys::Address address, sys::Address::parse(door));
    PCCL_ASSIGN_OR_RETURN(const auto job, bootstrap::job_secret(transport::kOnlookers));
    return transport::request_status(address, job.value_or(transport::kNoJobSecret), question,
                                     deadline);
}

}  // namespace pccl::runtime
