// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/job_exchange.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/ids.h"
#include "csrc/base/log/log.h"
#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"
#include "csrc/bootstrap/tree_gather.h"
#include "csrc/topo/machine/calibration.h"

namespace pccl::bootstrap {
namespace {

constexpr const char* kJobKey = "job";
constexpr const char* kDigestKey = "digest";
constexpr const char* kAgreedKey = "agreed";
constexpr std::size_t kLongestDigest = 256;
constexpr std::size_t kMostHostBytes = 8 * kMiB;

std::string host_key(Rank first) { return concat("host/", first); }

bool are_bound_apart(const Roster& roster) {
    const int first = roster.endpoints.front().numa;
    return std::any_of(roster.endpoints.begin(), roster.endpoints.end(),
                       [first](const Endpoint& endpoint) { return endpoint.numa != first; });
}

/// Returns whether files are configured, which are read or written when groups are made, as with
/// NCCL.
bool names_files(const Config& config) {
    return !(config.topo_file.empty() && config.topo_dump_file.empty() &&
             config.graph_file.empty() && config.graph_dump_file.empty());
}

void log_warnings(const topo::JobTopology& job) {
    constexpr std::array<std::string_view, 3> kLoud{"missing_nvlinks", "fabric_failed",
                                                    "nic_sets_differ"};
    for (const topo::Warning& warning : job.warnings()) {
        const bool is_loud = std::ranges::find(kLoud, warning.name) != kLoud.end();
        log(is_loud ? LogLevel::kWarning : LogLevel::kInfo, "topology: ", warning.name, ": ",
            warning.subject, ": ", warning.message);
    }
}

Result<topo::HostTopology> await_host(Store& store, const std::vector<Rank>& ranks,
                                      const RendezvousContext& rendezvous) {
    const Rank first = ranks.front();
    PCCL_ASSIGN_OR_RETURN(const std::string blob,
                          await_text(store, {host_key(first), first}, kMostHostBytes, rendezvous));
    auto host = topo::decode_host(blob);
    if (host.is_ok() && host->ranks == ranks) return host;
    const std::string why = host.is_ok() ? "it has other ranks" : host.status().message();
    return Status::peer_lost(
        first, concat("rank ", first, " describes a host that cannot be used: ", why));
}

Result<std::string> collect_job(Store& store, const std::vector<std::vector<Rank>>& hosts,
                                topo::HostTopology own, const RendezvousContext& rendezvous) {
    std::vector<topo::HostTopology> found;
    found.push_back(std::move(own));
    for (std::size_t host = 1; host < hosts.size(); ++host) {
        PCCL_ASSIGN_OR_RETURN(topo::HostTopology other, await_host(store, hosts[host], rendezvous));
        found.push_back(std::move(other));
    }
    PCCL_ASSIGN_OR_RETURN(const topo::JobTopology job, topo::JobTopology::make(std::move(found)));
    log_warnings(job);
    std::string text = encode(job);
    PCCL_TRY(publish_text(store, kJobKey, text));
    return text;
}

Status missing_topology(Store& store, int size) {
    const std::vector<Rank> silent = silent_in(store, kDigestKey, size);
    if (silent.empty()) {
        const Rank idle = idle_gatherer_in(store, kDigestKey, size);
        return Status::timeout(
            concat("timed out: rank ", idle,
                   " has not forwarded the topologies of other ranks; is it stopped?"),
            idle);
    }
    return Status::timeout(
        concat("timed out: ", listed(silent), silent.size() > 1 ? " have" : " has",
               " not published a topology; is every rank running?"),
        silent.front());
}

}  // namespace

Result<std::string> job_on_one_host(const Locality& locality, const Roster& roster) {
    const auto hosts = ranks_by_host(roster);
    const bool has_settings =
        are_bound_apart(roster) || topo::has_calibrations() || names_files(process_config());
    if (hosts.size() > 1 || !has_settings) return std::string();
    PCCL_ASSIGN_OR_RETURN(topo::HostTopology host, host_of_ranks(locality, roster, hosts.front()));
    PCCL_ASSIGN_OR_RETURN(const topo::JobTopology job, topo::JobTopology::make({std::move(host)}));
    return encode(job);
}

Status exchange_job(Store& store, Roster& roster, const OwnHost& own,
                    const RendezvousContext& rendezvous) {
    const auto hosts = ranks_by_host(roster);
    if (hosts.size() == 1) return Status::ok();
    const auto led = std::ranges::find_if(
        hosts, [&own](const auto& ranks) { return ranks.front() == own.self; });
    if (led == hosts.end()) {
        PCCL_ASSIGN_OR_RETURN(roster.job,
                              await_text(store, {kJobKey, 0}, kMostJobBytes, rendezvous));
        return Status::ok();
    }
    PCCL_ASSIGN_OR_RETURN(topo::HostTopology host, host_of_ranks(own.locality, roster, *led));
    if (own.self == 0) {
        PCCL_ASSIGN_OR_RETURN(roster.job, collect_job(store, hosts, std::move(host), rendezvous));
        return Status::ok();
    }
    if (own.time_way) host.way = own.time_way(roster);
    PCCL_TRY(publish_text(store, host_key(own.self), encode(host)));
    PCCL_ASSIGN_OR_RETURN(roster.job, await_text(store, {kJobKey, 0}, kMostJobBytes, rendezvous));
    return Status::ok();
}

Status agree_on_digest(Store& store, const std::string& digest, Rank self,
                       const RendezvousContext& rendezvous) {
    std::vector<std::string> digests;
    const TreeGather found{.key = kDigestKey,
                           .longest = kLongestDigest,
                           .take = [&](Rank, const std::string& contribution) {
                               digests.push_back(contribution);
                               return Status::ok();
                           }};
    const Status gathered = gather(store, found, {self, digest}, rendezvous);
    if (gathered.code() == StatusCode::kTimeout && gathered.peer() == kNoRank)
        return missing_topology(store, rendezvous.size);
    PCCL_TRY(gathered);
    if (self != 0) return await(store, {kAgreedKey, 0}, rendezvous).status();
    PCCL_TRY(topo::check_agreement(digests));
    return store.set(kAgreedKey, digest);
}

void remove_job(Store& store, Rank self, int size) {
    remove_text(store, host_key(self));
    remove_contribution(store, kDigestKey, self, size);
    if (self != 0) return;
    remove_text(store, kJobKey);
    static_cast<void>(store.remove(kAgreedKey));
}

Result<std::string> job_of_survivors(const std::string& job, const std::vector<Rank>& survivors) {
    if (job.empty()) return job;
    PCCL_ASSIGN_OR_RETURN(const topo::JobTopology whole, topo::decode_job(job));
    std::vector<topo::HostTopology> hosts;
    for (topo::HostTopology host : whole.hosts()) {
        topo::HostTopology left = host;
        left.ranks.clear();
        left.numa.clear();
        for (std::size_t place = 0; place < host.ranks.size(); ++place) {
            const auto found = std::ranges::find(survivors, host.ranks[place]);
            if (found == survivors.end()) continue;
            left.ranks.push_back(static_cast<Rank>(found - survivors.begin()));
            left.numa.push_back(host.numa_of(place));
        }
        if (!left.ranks.empty()) hosts.push_back(std::move(left));
    }
    PCCL_ASSIGN_OR_RETURN(const topo::JobTopology rest, topo::JobTopology::make(std::move(hosts)));
    return encode(rest);
}

}  // namespace pccl::bootstrap
