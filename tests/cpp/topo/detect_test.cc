// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/detect/detect.h"

#include <gmock/gmock.h>

#include "csrc/topo/detect/live.h"
#include "csrc/topo/xml/machine_xml.h"
#include "tests/cpp/topo/fake_sysfs.h"
#include "tests/cpp/topo/machines.h"

namespace pccl::topo {
namespace {

using ::testing::ElementsAre;

TEST(DetectTest, AFileCountsMoreThanTheKernel) {
    const FakeSysfs fake;
    add_h100(fake);
    Warnings warnings;
    const Machine live = observe(fake.sysfs(), &kGpus, warnings);
    Machine file = *parse_machine_xml(
        "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:0a:00.0\" link_width=\"8\"/>"
        "</cpu></system>",
        "t.xml", Source::kUserFile, warnings);
    enrich(file, live);
    const PciDevice& device = file.cpus[0].devices[0];
    EXPECT_EQ(*device.link_width, 8);
    EXPECT_EQ(device.link_width.source(), Source::kUserFile);
    EXPECT_EQ(*device.link_speed, "32.0 GT/s PCIe");
    EXPECT_EQ(device.link_speed.source(), Source::kNvml);
    EXPECT_EQ(device.gpus.at(0).sm.value_or(0), 90);
    EXPECT_EQ(*file.cpus[0].vendor, "GenuineIntel");
}

TEST(DetectTest, ChecksTheSurroundings) {
    const FakeSysfs fake;
    add_h100(fake);
    fake.write("sys/class/iommu/dmar0/x", "");
    std::string config(0x110, '\0');
    config[0x100] = 0x0D;  // ACS, the only extended capability
    config[0x106] = 0x04;  // redirects requests
    fake.write("sys/devices/pci0000:07/" + std::string(kSwitch) + "/config", config);
    Warnings warnings;
    const Machine machine = observe(fake.sysfs(), &kGpus, warnings);
    check_surroundings(fake.sysfs(), machine, warnings);
    EXPECT_THAT(names_of(warnings), ElementsAre("acs_on", "iommu_on"));
    EXPECT_EQ(warnings[0].subject, "0000:08:00.0");
}

TEST(DetectTest, UnderstandsThisMachine) {
    const auto topology = detect({});
    ASSERT_TRUE(topology.is_ok()) << topology.status().to_string();
    EXPECT_FALSE(topology->graph().cpus().empty());
    for (const Node& node : topology->graph().nodes()) EXPECT_FALSE(node.name.empty());
    const auto again = Topology::parse(topology->to_xml(), "detected", {});
    ASSERT_TRUE(again.is_ok()) << again.status().to_string();
    EXPECT_TRUE(again->machine() == topology->machine());
}

}  // namespace
}  // namespace pccl::topo
