// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/graph/paths.h"

#include <gmock/gmock.h>

#include <functional>
#include <limits>
#include <set>

#include "tests/cpp/topo/machines.h"

namespace pccl::topo {
namespace {

Path path(const Topology& topology, std::string_view from, std::string_view to) {
    return topology.paths().path(topology.graph().find(from), topology.graph().find(to));
}

PathType type(const Topology& topology, std::string_view from, std::string_view to) {
    return path(topology, from, to).type;
}

const LoadOptions kNdv5{.assume = {.sm = 90, .nvlinks = 18, .net_speed = 400000}};

TEST(PathsTest, TypesOfADgx1) {
    const Topology dgx1 = load("nccl/dgx1v_cubemesh.xml");
    EXPECT_EQ(type(dgx1, "gpu0", "gpu0"), PathType::kLoc);
    EXPECT_EQ(type(dgx1, "gpu0", "gpu1"), PathType::kNvl);
    EXPECT_EQ(path(dgx1, "gpu0", "gpu1").bandwidth, 20);
    EXPECT_EQ(path(dgx1, "gpu0", "gpu3").bandwidth, 40);
    EXPECT_EQ(type(dgx1, "gpu0", "gpu5"), PathType::kNvb);
    EXPECT_EQ(path(dgx1, "gpu0", "gpu5").hops, 2);
    EXPECT_EQ(type(dgx1, "gpu0", "net0"), PathType::kPix);
    EXPECT_EQ(type(dgx1, "gpu0", "net2"), PathType::kPxn);
    EXPECT_EQ(path(dgx1, "gpu0", "net0").bandwidth, 12);
}

TEST(PathsTest, TypesOfAnH100WithTwoLevelsOfSwitches) {
    const Topology oci = load("nccl/H100-topology-kubernetes.xml");
    EXPECT_EQ(type(oci, "gpu0", "net0"), PathType::kPix) << "the levels of one Broadcom switch";
    EXPECT_EQ(type(oci, "gpu0", "net2"), PathType::kPxn);
    EXPECT_DOUBLE_EQ(path(oci, "gpu0", "gpu7").bandwidth, 18 * 20.6);
    EXPECT_EQ(path(oci, "gpu0", "mlx5_18").bandwidth, 25);
}

TEST(PathsTest, WithoutPeerAccessGpusMeetInTheCpu) {
    const Topology direct = load("nccl/panlichen_8x3090_topo.xml");
    EXPECT_EQ(type(direct, "gpu0", "gpu1"), PathType::kPix);
    EXPECT_EQ(type(direct, "gpu0", "gpu4"), PathType::kSys);
    const Topology staged =
        load("nccl/panlichen_8x3090_topo.xml", {.assume = {.peer_to_peer = false}});
    EXPECT_EQ(type(staged, "gpu0", "gpu1"), PathType::kPhb);
    EXPECT_EQ(path(staged, "gpu0", "gpu1").hops, 4);
    EXPECT_EQ(type(staged, "gpu4", "net0"), PathType::kPhb) << "gdr is 0";
}

TEST(PathsTest, HostBridgesOfIntelAndOldGpusCostMore) {
    const Topology staged =
        load("nccl/panlichen_8x3090_topo.xml", {.assume = {.peer_to_peer = false}});
    const Graph& graph = staged.graph();
    for (const Charge& charge : staged.paths().charges(graph.find("gpu0"), graph.find("gpu1")))
        EXPECT_EQ(charge.weight, 1.2);
    const Topology dgx1 = load("nccl/dgx1v_cubemesh.xml");
    const auto charges = dgx1.paths().charges(dgx1.graph().find("net0"), dgx1.graph().find("gpu0"));
    ASSERT_EQ(charges.size(), 4U);
    EXPECT_EQ(charges[3].weight, 0.125);
    EXPECT_EQ(charges[3].link, Graph::reverse(charges[2].link));
}

TEST(PathsTest, ChipToChipLinksLeadToDistantNics) {
    const Topology gb200 =
        load("nccl/gb200_nvl8_2trays.xml", {.assume = {.multi_node_nvlink = true}});
    EXPECT_EQ(type(gb200, "gpu0", "cpu0"), PathType::kC2c);
    EXPECT_EQ(type(gb200, "gpu0", "net0"), PathType::kPix);
    EXPECT_EQ(type(gb200, "gpu0", "net1"), PathType::kP2c);
    EXPECT_EQ(type(gb200, "gpu0", "net2"), PathType::kPxn);
    EXPECT_EQ(type(gb200, "gpu0", "gpu7"), PathType::kNvl);
    EXPECT_EQ(type(gb200, "gpu0", "net4"), PathType::kDis) << "a NIC of another host";
    const Topology apart = load("nccl/gb200_nvl8_2trays.xml");
    EXPECT_EQ(type(apart, "gpu0", "gpu7"), PathType::kDis);
}

TEST(PathsTest, LinksLeadFromEndToEnd) {
    for (const std::string& name : files_of("nccl")) {
        const Topology topology = load(name, kNdv5);
        const Graph& graph = topology.graph();
        std::vector<int> ends = graph.gpus();
        ends.insert(ends.end(), graph.nets().begin(), graph.nets().end());
        for (const int from : ends) {
            for (const int to : ends) {
                const Path found = topology.paths().path(from, to);
                const std::vector<int> links = topology.paths().links(from, to);
                EXPECT_EQ(std::ssize(links), found.hops);
                double narrowest = std::numeric_limits<double>::infinity();
                int node = from;
                for (const int link : links) {
                    EXPECT_EQ(graph.link(link).from, node);
                    node = graph.link(link).to;
                    narrowest = std::min(narrowest, graph.link(link).bandwidth);
                }
                if (found.type == PathType::kDis) continue;
                EXPECT_EQ(node, to);
                EXPECT_EQ(narrowest, found.bandwidth);
            }
        }
    }
}

/// Every simple path, tried out: the widest bandwidth with links of the given types only.
double widest_by_trying(const Graph& graph, int from, int to, LinkType worst) {
    double best = 0;
    std::set<int> seen;
    const std::function<void(int, double)> visit = [&](int node, double width) {
        if (node == to) {
            best = std::max(best, width);
            return;
        }
        const NodeType type = graph.node(node).type;
        if (node != from && (type == NodeType::kGpu || type == NodeType::kNet)) return;
        seen.insert(node);
        for (const int link : graph.links_from(node))
            if (graph.link(link).type <= worst && seen.count(graph.link(link).to) == 0)
                visit(graph.link(link).to, std::min(width, graph.link(link).bandwidth));
        seen.erase(node);
    };
    visit(from, std::numeric_limits<double>::infinity());
    return best;
}

TEST(PathsTest, AreTheWidestOfTheirType) {
    for (const char* name : {"nccl/ncv4-topo.xml", "nccl/panlichen_8x3090_topo.xml",
                             "nccl/p4d-24xl-topo.xml", "nccl/h200x8_vm.xml"}) {
        const Topology topology = load(name);
        const Graph& graph = topology.graph();
        for (const int from : graph.gpus()) {
            for (const int to : graph.gpus()) {
                const Path found = topology.paths().path(from, to);
                if (from == to || found.type < PathType::kPix) continue;
                const LinkType worst =
                    found.type == PathType::kSys ? LinkType::kSys : LinkType::kPci;
                EXPECT_EQ(found.bandwidth, widest_by_trying(graph, from, to, worst)) << name;
            }
        }
    }
}

}  // namespace
}  // namespace pccl::topo
