// SPDX-License-Identifier: Apache-2.0

// Rosters of ranks that claim to run on several hosts.
#pragma once

#include "csrc/bootstrap/locality.h"

namespace pccl::comm {

using transport::TransportKind;

/// Two NUMA nodes, and a port "eth0" on the first.
inline topo::Topology machine_with(int megabits) {
    const std::string xml =
        "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"AuthenticAMD\"><nic>"
        "<net name=\"eth0\" dev=\"0\" speed=\"" +
        std::to_string(megabits) +
        "\" port=\"0\" guid=\"0x1\" gdr=\"0\"/></nic></cpu>"
        "<cpu numaid=\"1\" arch=\"x86_64\" vendor=\"AuthenticAMD\"/></system>";
    auto topology = topo::Topology::parse(xml, "test", {});
    EXPECT_TRUE(topology.is_ok()) << topology.status().to_string();
    return *std::move(topology);
}

struct Place {
    int host = 0;
    int numa = 0;
};

inline bootstrap::Locality locality_of(const Place& place, int megabits) {
    const std::string host = "node" + std::to_string(place.host);
    return {.machine = host,
            .host = host,
            .numa = place.numa,
            .network = {.interface = "eth0", .subnet = "10.0.0.0/24"},
            .topology = machine_with(megabits)};
}

inline bootstrap::Roster roster_of(const std::vector<Place>& places, int megabits) {
    bootstrap::Roster roster;
    for (std::size_t i = 0; i < places.size(); ++i) {
        bootstrap::Endpoint endpoint;
        endpoint.rank = static_cast<Rank>(i);
        endpoint.machine = "node" + std::to_string(places[i].host);
        endpoint.numa = places[i].numa;
        endpoint.address.control.host = endpoint.machine;
        endpoint.address.links[TransportKind::kShm] = {"unix:@x"};
        roster.endpoints.push_back(endpoint);
    }
    std::vector<topo::HostTopology> hosts;
    for (const auto& ranks : bootstrap::ranks_by_host(roster)) {
        const Place& first = places[static_cast<std::size_t>(ranks.front())];
        auto host = bootstrap::host_of_ranks(locality_of(first, megabits), roster, ranks);
        EXPECT_TRUE(host.is_ok()) << host.status().to_string();
        hosts.push_back(*std::move(host));
    }
    auto job = topo::JobTopology::make(std::move(hosts));
    EXPECT_TRUE(job.is_ok()) << job.status().to_string();
    roster.job = encode(*job);
    return roster;
}

inline const std::vector<Place> kInterleaved{{0, 0}, {1, 0}, {0, 1}, {1, 1},
                                             {0, 0}, {1, 0}, {0, 1}, {1, 1}};

inline std::vector<Place> hosts_of_four(int hosts) {
    std::vector<Place> places;
    for (int rank = 0; rank < 4 * hosts; ++rank) places.push_back({rank / 4, rank % 4 / 2});
    return places;
}

}  // namespace pccl::comm
