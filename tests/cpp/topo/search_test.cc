// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/search/search.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "tests/cpp/topo/machines.h"
#include "tests/cpp/topo/nccl_table.h"

namespace pccl::topo {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

ChannelPlan found(const Topology& topology, const SearchOptions& options) {
    auto plan = search(topology, options);
    EXPECT_TRUE(plan.is_ok()) << plan.status().to_string();
    return *plan;
}

TEST(SearchTest, FindsAtLeastWhatNcclFinds) {
    for (const NcclRow& row : nccl_rows()) {
        SCOPED_TRACE(row.name + " " + std::string(to_string(row.search.pattern)));
        const OwnResult own = own_result(row);
        EXPECT_GE(own.plan.bandwidth, row.bandwidth - 1e-6);
        EXPECT_LE(own.plan.type_intra, row.type_intra);
        if (row.search.nodes > 1) {
            EXPECT_LE(own.plan.type_inter, row.type_inter);
        }
        EXPECT_TRUE(own.plan.optimal) << "bound " << own.plan.bound;
        EXPECT_LE(own.plan.channels.size(), 32U);
        EXPECT_LT(own.plan.seconds, 0.25);
    }
}

TEST(SearchTest, AgreesWithItself) {
    for (const NcclRow& row : nccl_rows()) {
        const ChannelPlan first = own_result(row).plan;
        EXPECT_TRUE(first == own_result(row).plan) << row.name;
    }
}

TEST(SearchTest, ADgx1HasSixRingsThatShareNoLink) {
    const Topology dgx1 = load("nccl/dgx1v_cubemesh.xml");
    const ChannelPlan plan = found(dgx1, {.pattern = Pattern::kRing});
    ASSERT_THAT(plan.channels, SizeIs(6));
    const Graph& graph = dgx1.graph();
    std::map<std::pair<int, int>, double> carried;
    for (const Channel& channel : plan.channels) {
        EXPECT_EQ(channel.bandwidth, 20);
        for (std::size_t i = 0; i < 8; ++i)
            carried[{channel.order[i], channel.order[(i + 1) % 8]}] += channel.bandwidth;
    }
    double links = 0;
    for (const auto& [hop, bandwidth] : carried) {
        double width = 0;
        for (const int link : graph.links_from(graph.gpus()[static_cast<std::size_t>(hop.first)]))
            if (graph.link(link).to == graph.gpus()[static_cast<std::size_t>(hop.second)])
                width = graph.link(link).bandwidth;
        EXPECT_EQ(bandwidth, width) << hop.first << " -> " << hop.second;
        links += width / 20;
    }
    EXPECT_EQ(links, 48) << "every NVLink of the machine, both ways";
}

TEST(SearchTest, PairsChannelsWhoseNicsDiffer) {
    const ChannelPlan plan = found(load("nccl/H100-topology-kubernetes.xml"), {.nodes = 2});
    for (std::size_t i = 0; i < plan.channels.size(); i += 2) {
        const Channel& one = plan.channels[i];
        const Channel& other = plan.channels[i + 1];
        EXPECT_EQ(one.net_in, other.net_out);
        EXPECT_EQ(one.net_out, other.net_in);
        EXPECT_TRUE(std::equal(one.order.begin(), one.order.end(), other.order.rbegin()));
    }
}

TEST(SearchTest, OneLostNvLinkCostsAsMuchAsTheBound) {
    std::string text = read_data("nccl/h200x8_vm.xml");
    const std::string link =
        "<nvlink target=\"fffffff:ff:ff.0\" count=\"18\" tclass=\"0x068000\"/>";
    text.erase(text.find(link), link.size());
    const Topology lost = *Topology::parse(text, "t.xml", {});
    const ChannelPlan plan = found(lost, {.pattern = Pattern::kRing});
    EXPECT_GT(plan.bandwidth, 30) << "a hop through the CPU costs 6/5 of 48 GB/s";
    EXPECT_LE(plan.bandwidth, 48);
    EXPECT_TRUE(plan.optimal);
    const auto heads = search(lost, {.pattern = Pattern::kHeads});
    EXPECT_EQ(heads.status().message(),
              "search: heads need every GPU on an NVSwitch; gpu0 (0000:00:06.0) is not");
}

TEST(SearchTest, KeepsTheLimitOfChannels) {
    const Topology gb200 =
        load("nccl/gb200_nvl72_18trays.xml", {.assume = {.multi_node_nvlink = true}});
    for (const int most : {1, 2, 5, 64}) {
        const ChannelPlan plan = found(gb200, {.nodes = 2, .max_channels = most});
        EXPECT_LE(std::ssize(plan.channels), most);
        EXPECT_LE(plan.bandwidth, plan.bound * (1 + 1e-9));
    }
}

TEST(SearchTest, SpendsNoMoreStepsThanItMay) {
    const Topology staged =
        load("nccl/panlichen_8x3090_topo.xml", {.assume = {.peer_to_peer = false}});
    const ChannelPlan hasty = found(staged, {.pattern = Pattern::kTree, .nodes = 2, .steps = 0});
    EXPECT_FALSE(hasty.optimal);
    EXPECT_LT(hasty.bandwidth, hasty.bound);
    EXPECT_LT(hasty.bandwidth, found(staged, {.pattern = Pattern::kTree, .nodes = 2}).bandwidth);
}

TEST(SearchTest, NamesTheReasonWhereThereIsNoPlan) {
    const auto why = [](const Topology& topology, const SearchOptions& options) {
        return search(topology, options).status().message();
    };
    EXPECT_THAT(why(load("nccl/g5.48xl-topo.xml"), {}), HasSubstr("has no GPU"));
    EXPECT_THAT(why(load("nccl/gb200_nvl8_2trays.xml"), {}), HasSubstr("assume mnnvl=1"));
    EXPECT_THAT(why(load("nccl/dgx2_16xV100.xml"), {.pattern = Pattern::kHeads}),
                HasSubstr("gpu0 is sm 70"));
    EXPECT_THAT(why(load("nccl/dgx2_16xV100.xml"), {.nodes = 0}),
                HasSubstr("nodes is 0, must be from 1"));
    EXPECT_THAT(why(load("nccl/dgx2_16xV100.xml"), {.max_channels = 65}),
                HasSubstr("max_channels is 65"));
}

TEST(SearchTest, OneGpuNeedsNoWayToOthers) {
    const Topology one = load("nccl/h100_1gpu_1nic.xml");
    EXPECT_EQ(found(one, {}).type_intra, PathType::kLoc);
    const ChannelPlan between = found(one, {.nodes = 2});
    EXPECT_EQ(between.bandwidth, 48);
    EXPECT_EQ(between.channels.at(0).net_in, 0);
    EXPECT_EQ(between.type_inter, PathType::kPix);
}

}  // namespace
}  // namespace pccl::topo
