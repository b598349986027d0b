// SPDX-License-Identifier: Apache-2.0

// Topologies that hwloc has written.
#include "csrc/topo/xml/hwloc_xml.h"

#include <gmock/gmock.h>

#include "csrc/topo/search/search.h"
#include "tests/cpp/topo/machines.h"

namespace pccl::topo {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(HwlocXmlTest, ReadsRealMachines) {
    struct Expected {
        const char* file;
        std::size_t gpus, nets, cpus;
    };
    for (const Expected& expected : {Expected{"hwloc/c5n.18xl.hwloc.xml", 0, 1, 2},
                                     {"hwloc/g5.48xl.hwloc.xml", 8, 1, 2},
                                     {"hwloc/p4d.24xl.hwloc.xml", 8, 4, 2},
                                     {"hwloc/p5.48xl.hwloc.xml", 8, 32, 2}}) {
        const Topology topology = load(expected.file, {.assume = {.nvlinks = 12}});
        EXPECT_EQ(topology.graph().gpus().size(), expected.gpus) << expected.file;
        EXPECT_EQ(topology.graph().nets().size(), expected.nets) << expected.file;
        EXPECT_EQ(topology.graph().cpus().size(), expected.cpus) << expected.file;
        EXPECT_THAT(names_of(topology.warnings()), Not(Contains("unknown_sm")));
    }
}

TEST(HwlocXmlTest, FindsTheSwitchesOfAP5) {
    const Topology p5 =
        load("hwloc/p5.48xl.hwloc.xml", {.assume = {.nvlinks = 18, .net_speed = 100000}});
    const Graph& graph = p5.graph();
    int near = 0;
    for (const int net : graph.nets())
        if (p5.paths().path(graph.gpus()[0], net).type <= PathType::kPxb) ++near;
    EXPECT_EQ(near, 4) << "of 32 ports, 4 are beside each GPU";
    EXPECT_GE(search(p5, {.nodes = 2})->bandwidth, 8 * 4 * 12.0 * 0.9);
}

/// Of one port that does RDMA, one that does not, and a GPU.
std::string hwloc_xml(const std::string& version, const std::string& network,
                      const std::string& rdma, const std::string& gpu) {
    const auto device = [](const std::string& bus_id, const std::string& type,
                           const std::string& name, const std::string& number) {
        return "<object type=\"PCIDev\" pci_busid=\"" + bus_id + "\" pci_type=\"" + type +
               "\"><object type=\"OSDev\" name=\"" + name + "\" osdev_type=\"" + number +
               "\"/></object>";
    };
    return "<topology version=\"" + version +
           "\"><object type=\"Machine\"><object type=\"NUMANode\" os_index=\"0\" nodeset=\"0x1\" "
           "cpuset=\"0xf\"/><object type=\"Bridge\" bridge_type=\"0-1\" nodeset=\"0x1\">" +
           device("0000:01:00.0", "0200 [8086:1533] [8086:0001] 03 00", "eth0", network) +
           device("0000:02:00.0", "0207 [15b3:101b] [15b3:0007] 00 00", "mlx5_0", rdma) +
           device("0000:03:00.0", "0302 [10de:2330] [10de:16c1] a1 00", "nvml0", gpu) +
           "</object></object></topology>";
}

TEST(HwlocXmlTest, ReadsVersionThreeWhoseTypesAreBits) {
    const auto second = Topology::parse(hwloc_xml("2.0", "2", "3", "1"), "h.xml", {});
    const auto third = Topology::parse(hwloc_xml("3.0", "16", "48", "12"), "h.xml", {});
    ASSERT_TRUE(second.is_ok()) << second.status().to_string();
    ASSERT_TRUE(third.is_ok()) << third.status().to_string();
    EXPECT_EQ(third->to_xml(), second->to_xml());
    EXPECT_EQ(third->graph().gpus().size(), 1U);
    EXPECT_THAT(third->to_xml(), HasSubstr("name=\"mlx5_0\""));
}

TEST(HwlocXmlTest, RefusesWhatItCannotRead) {
    const auto refused = [](const char* text) {
        return Topology::parse(text, "h.xml", {}).status().message();
    };
    EXPECT_EQ(refused("<topology>\n<object type=\"Machine\"/></topology>"),
              "h.xml:1: <topology> has no version, as hwloc 1 wrote it; versions 2 and 3 are read: "
              "lstopo of hwloc 2 converts it (lstopo --input old.xml new.xml)");
    EXPECT_EQ(refused("<topology version=\"4.0\"/>"),
              "h.xml:1: <topology> has version=\"4.0\"; versions 2 and 3 are read: "
              "lstopo --export-xml-flags v2 writes the former");
    EXPECT_EQ(
        refused("<topology version=\"2.0\">\n<object type=\"PCIDev\" pci_busid=\"1\"/></topology>"),
        "h.xml:2: <object> has pci_busid=\"1\", which must be a PCI bus id such as 0000:0d:00.0");
}

}  // namespace
}  // namespace pccl::topo
