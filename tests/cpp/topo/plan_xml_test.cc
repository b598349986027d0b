// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/search/plan_xml.h"

#include <gmock/gmock.h>

#include "tests/cpp/topo/machines.h"
#include "tests/cpp/topo/nccl_table.h"

namespace pccl::topo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string refusal_of_plan(const std::string& text, const Topology& topology) {
    return parse_plan_xml(text, "g.xml", topology).status().message();
}

TEST(PlanXmlTest, GivesEveryPlanBack) {
    for (const NcclRow& row : nccl_rows()) {
        const Topology topology = load(row.file, row.load);
        const ChannelPlan plan = *search(topology, row.search);
        const auto read = parse_plan_xml(plan_xml({plan}, topology), "g.xml", topology);
        ASSERT_TRUE(read.is_ok()) << row.name << ": " << read.status().to_string();
        ASSERT_THAT(*read, SizeIs(1));
        if (row.search.pattern != Pattern::kHeads) {
            EXPECT_TRUE(read->front() == plan) << row.name;
        }
        EXPECT_EQ(read->front().bandwidth, plan.bandwidth);
    }
}

TEST(PlanXmlTest, ReadsWhatNcclWrites) {
    const Topology h200 = load("nccl/h200x8_vm.xml");
    const auto plans = parse_plan_xml(read_data("h200x8_vm.graph.xml"), "g.xml", h200);
    ASSERT_TRUE(plans.is_ok()) << plans.status().to_string();
    const ChannelPlan& ring = plans->front();
    EXPECT_EQ(ring.pattern, Pattern::kRing);
    EXPECT_EQ(ring.nodes, 1);
    ASSERT_THAT(ring.channels, SizeIs(12));
    EXPECT_THAT(ring.channels[3].order, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
    EXPECT_EQ(ring.bandwidth, 360);
    EXPECT_GE(search(h200, {})->bandwidth, ring.bandwidth) << "ours is no worse";
}

TEST(PlanXmlTest, DistinguishesGpusOfOneNumber) {
    std::string text = read_data("nccl/panlichen_8x3090_topo.xml");
    for (int dev = 1; dev < 8; ++dev) {
        const std::string old = "<gpu dev=\"" + std::to_string(dev) + "\"";
        text.replace(text.find(old), old.size(), "<gpu dev=\"0\"");
    }
    const Topology alike = *Topology::parse(text, "t.xml", {});
    const auto plans = parse_plan_xml(plan_xml({*search(alike, {})}, alike), "g.xml", alike);
    ASSERT_TRUE(plans.is_ok()) << plans.status().to_string();
}

TEST(PlanXmlTest, NamesThePlaceAndTheRightForm) {
    const Topology one = load("nccl/h100_1gpu_1nic.xml");
    const auto graph = [](const std::string& inside, const std::string& speed = "20") {
        return "<graphs version=\"1\">\n<graph id=\"0\" nchannels=\"1\" speedintra=\"" + speed +
               "\" typeintra=\"LOC\" typeinter=\"PIX\">" + inside + "</graph></graphs>";
    };
    EXPECT_EQ(refusal_of_plan(graph("\n<channel>\n<gpu dev=\"7\"/></channel>"), one),
              "g.xml:4: <gpu> has dev=\"7\", which the machine has not");
    EXPECT_EQ(refusal_of_plan(graph("<channel><gpu dev=\"0\"/></channel>", "-1"), one),
              "g.xml:2: <graph> has speedintra=\"-1\", which must be GB/s above 0");
    EXPECT_THAT(refusal_of_plan(graph("<channel/>"), one), HasSubstr("each of the 1 GPUs once"));
    EXPECT_THAT(refusal_of_plan(graph("<channel><gpu dev=\"0\"/><gpu dev=\"0\"/></channel>"), one),
                HasSubstr("each of the 1 GPUs once"));
    EXPECT_THAT(refusal_of_plan(graph(""), one), HasSubstr("has 0 channels, and nchannels=\"1\""));
    EXPECT_THAT(refusal_of_plan("<system version=\"1\"/>", one),
                HasSubstr("no <graphs version=\"1\">"));
    EXPECT_TRUE(
        parse_plan_xml(graph("<channel><gpu dev=\"0x0\"/></channel>"), "g.xml", one).is_ok());
}

}  // namespace
}  // namespace pccl::topo
