// SPDX-License-Identifier: Apache-2.0

// Phases from C++: a program registers two, and switches between them, in two steps and in one.
//
//     switch_phases                # on a fabric in this process
//     switch_phases cluster.json   # on the switches of a cluster file
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include <pccl/cluster.h>
#include <pccl/phases.h>

namespace {

using pccl::Deadline;
using pccl::Result;
using pccl::Status;
using pccl::cluster::Circuit;
using pccl::cluster::CircuitsBySwitch;
using pccl::cluster::Cluster;
using pccl::cluster::Command;
using pccl::cluster::Ending;
using pccl::cluster::Report;

Result<std::unique_ptr<Cluster>> open_cluster(const std::string& file) {
    if (!file.empty()) return Cluster::load(file);
    return Cluster::parse(R"({"devices": [{}, {}, {}, {}]})", "four devices");
}

/// The way back of a circuit takes the same two ports.
Result<CircuitsBySwitch> turned_around(const CircuitsBySwitch& from) {
    CircuitsBySwitch to = from;
    for (auto& [name, circuits] : to)
        for (Circuit& each : circuits) std::swap(each.ingress, each.egress);
    return to;
}

Status register_phases(Cluster& cluster) {
    const auto forwards =
        pccl::cluster::ring_of(static_cast<int>(cluster.description().devices.size()));
    auto backwards = forwards;
    for (auto& link : backwards) std::swap(link.from, link.to);
    PCCL_TRY(cluster.register_phase({.name = "example-forwards", .links = forwards}));
    PCCL_TRY(cluster.register_phase({.name = "example-backwards", .links = backwards}));
    return cluster.register_transform("example-forwards", "example-backwards", turned_around);
}

Status show(const Cluster& cluster, const Report& report) {
    if (report.ending != Ending::kSwitched) return report.reason;
    const std::string& phase = cluster.current();
    std::printf("%s: dark for %.1f ms\n", phase.empty() ? "no phase" : phase.c_str(),
                std::chrono::duration<double, std::milli>(report.dark).count());
    return Status::ok();
}

Status switch_phases(const std::string& file) {
    PCCL_ASSIGN_OR_RETURN(const auto cluster, open_cluster(file));
    PCCL_TRY(register_phases(*cluster));

    // Both steps at once; what is not confirmed by the deadline is taken back.
    PCCL_ASSIGN_OR_RETURN(
        Report report,
        cluster->switch_phase("example-forwards",
                              {.deadline = Deadline::after(std::chrono::seconds(30))}));
    PCCL_TRY(show(*cluster, report));

    // Traffic runs on until the second step.
    PCCL_TRY(cluster->pre_commit("example-backwards"));
    PCCL_ASSIGN_OR_RETURN(report, cluster->commit());
    PCCL_TRY(show(*cluster, report));

    // One switch by itself, and back.
    const std::string first = cluster->description().switches.front().name;
    PCCL_ASSIGN_OR_RETURN(const auto circuits, cluster->proven(first));
    PCCL_TRY(cluster->command(first, Command::disconnect(circuits->front().ingress)));
    PCCL_ASSIGN_OR_RETURN(report, cluster->commit_switch(first));
    PCCL_TRY(show(*cluster, report));
    PCCL_ASSIGN_OR_RETURN(report, cluster->switch_phase("example-forwards"));
    return show(*cluster, report);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 2) {
        std::fprintf(stderr, "usage: switch_phases [CLUSTER.JSON]\n");
        return 2;
    }
    const Status status = switch_phases(argc == 2 ? argv[1] : "");
    if (!status.is_ok()) std::fprintf(stderr, "%s\n", status.to_string().c_str());
    return status.is_ok() ? 0 : 1;
}
