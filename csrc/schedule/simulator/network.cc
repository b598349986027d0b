// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/simulator/network.h"

#include <cstddef>
#include <utility>

#include "csrc/base/text/text.h"

namespace pccl::schedule {
namespace {

std::vector<double> equal(int links, double bandwidth) {
    return std::vector<double>(static_cast<std::size_t>(links), bandwidth);
}

/// Returns the route over `hops` circuits from `first` on, of the circuits that begin at link
/// `base`.
MessageRoute along(int base, int first, int step, int hops, int ranks, const LinkSpeed& speed) {
    MessageRoute route{speed.start_seconds, hops * speed.hop_seconds, {}};
    route.way.reserve(static_cast<std::size_t>(hops));
    for (int hop = 0; hop < hops; ++hop)
        route.way.push_back({base + (first + step * hop + ranks * hops) % ranks});
    return route;
}

}  // namespace

SimulatedNetwork ring_of_circuits(int ranks, int ports, const LinkSpeed& speed) {
    return {.ranks = ranks,
            .bandwidth = equal(ports * ranks, speed.bandwidth),
            .route =
                [=](Rank from, Rank to) {
                    const int ahead = (to - from + ranks) % ranks;
                    const int back = ranks - ahead;
                    if (ports == 2 && back < ahead)
                        return along(ranks, from, -1, back, ranks, speed);
                    return along(0, from, 1, ahead, ranks, speed);
                },
            .name =
                [=](int link) {
                    const int from = link % ranks;
                    const int to = (from + (link < ranks ? 1 : ranks - 1)) % ranks;
                    return concat("circuit ", from, " -> ", to);
                },
            .turns = true};
}

SimulatedNetwork one_switch(int ranks, const LinkSpeed& speed) {
    return {
        .ranks = ranks,
        .bandwidth = equal(2 * ranks, speed.bandwidth),
        .route =
            [=](Rank from, Rank to) {
                return MessageRoute{speed.start_seconds, speed.hop_seconds, {{from}, {ranks + to}}};
            },
        .name =
            [=](int link) { return concat(link < ranks ? "from" : "to", " rank ", link % ranks); },
        .turns = true};
}

SimulatedNetwork two_levels(int ranks, int ranks_per_host, const LinkSpeed& within,
                            const LinkSpeed& across) {
    const int hosts = ranks / ranks_per_host;
    std::vector<double> bandwidth = equal(2 * ranks, within.bandwidth);
    bandwidth.insert(bandwidth.end(), 2 * static_cast<std::size_t>(hosts), across.bandwidth);
    return {.ranks = ranks,
            .bandwidth = std::move(bandwidth),
            .route =
                [=](Rank from, Rank to) {
                    const int out = from / ranks_per_host;
                    const int in = to / ranks_per_host;
                    if (out == in)
                        return MessageRoute{
                            within.start_seconds, within.hop_seconds, {{from}, {ranks + to}}};
                    return MessageRoute{
                        across.start_seconds,
                        across.hop_seconds,
                        {{from}, {2 * ranks + out}, {2 * ranks + hosts + in}, {ranks + to}}};
                },
            .name =
                [=](int link) {
                    if (link < 2 * ranks)
                        return concat(link < ranks ? "from" : "to", " rank ", link % ranks);
                    const int uplink = link - 2 * ranks;
                    return concat(uplink < hosts ? "out of" : "into", " host ", uplink % hosts);
                }};
}

SimulatedNetwork one_machine(int ranks, int cores, const MessageWork& work) {
    const double bandwidth = 1 / work.seconds_per_byte;
    std::vector<double> bandwidths = equal(2 * ranks, bandwidth);
    bandwidths.push_back(cores * bandwidth);
    const int in = work.takes_both ? 0 : ranks;
    const Crossing of_cores{.link = 2 * ranks, .times = work.takes_both ? 2.0 : 1.0};
    return {.ranks = ranks,
            .bandwidth = std::move(bandwidths),
            .route =
                [=](Rank from, Rank to) {
                    return MessageRoute{.start_seconds = 0,
                                        .travel_seconds = work.travel_seconds,
                                        .way = {{from}, {in + to}, of_cores},
                                        .start_bytes = work.start_seconds * bandwidth};
                },
            .name =
                [=](int link) {
                    if (link == 2 * ranks) return concat("the ", cores, " cores");
                    return concat(link < ranks ? "rank " : "into rank ", link % ranks);
                },
            .sums = {.way = [=](Rank rank) { return std::vector<Crossing>{{rank}, {2 * ranks}}; },
                     .bytes_per_byte = work.sum_seconds_per_byte * bandwidth},
            .bytes_per_run = work.run_seconds * bandwidth,
            .bytes_per_receipt = work.receipt_seconds * bandwidth,
            .bytes_per_byte_taken = work.take_seconds_per_byte * bandwidth,
            .look_seconds = work.look_seconds,
            .capacity = work.capacity};
}

}  // namespace pccl::schedule
