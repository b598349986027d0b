// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/machine/completion.h"

#include <gmock/gmock.h>

#include "tests/cpp/topo/machines.h"
#include "tests/cpp/topo/sane_machines.h"

namespace pccl::topo {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(SanityTest, CompletesAFileOfPciDevicesOnly) {
    const Topology ndv4 =
        load("nccl/ndv4-topo.xml", {.assume = {.sm = 80, .nvlinks = 12, .net_speed = 200000}});
    EXPECT_THAT(names_of(ndv4.warnings()), ElementsAre("undescribed_gpu", "undescribed_nic"));
    EXPECT_EQ(ndv4.graph().gpus().size(), 8U);
    EXPECT_EQ(ndv4.graph().nets().size(), 8U);
    EXPECT_EQ(width(ndv4, "gpu0", "gpu7"), 240);
    EXPECT_EQ(width(ndv4, "gpu0", "net0"), 24);
    EXPECT_EQ(ndv4.machine().cpus[0].devices[0].children[0].gpus[0].sm.source(),
              Source::kAssumption);
    const Topology unassumed = load("nccl/ndv4-topo.xml");
    EXPECT_THAT(names_of(unassumed.warnings()), Contains("unknown_sm"));
    EXPECT_THAT(names_of(unassumed.warnings()), Contains("unknown_net_speed"));
    EXPECT_THAT(warning(unassumed, "undescribed_gpu").repair, HasSubstr("assume nvlinks"));
}

TEST(SanityTest, TrustsNoVirtualSwitch) {
    std::string text = read_data("nccl/ndv5-topo.xml");
    text = replaced(text, "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"",
                    "link_speed=\"2.5 GT/s PCIe\" link_width=\"1\"");
    const Topology ndv5 = parse_topology(text);
    EXPECT_EQ(warning(ndv5, "slow_switch_link").subject, "ffff:ff:01.0");
    EXPECT_EQ(width(ndv5, "gpu0", "cpu0"), 48);
    EXPECT_EQ(ndv5.machine().cpus[0].devices[0].link_width.source(), Source::kRepair);
}

TEST(SanityTest, ASwitchOfUnknownWidthIsNoNarrowerThanItsDevices) {
    std::string text = replaced(read_data("nccl/h100_1gpu_1nic.xml"), "link_width=\"16\"",
                                "link_width=\"0\"");                  // the switch
    text = replaced(text, "link_width=\"16\"", "link_width=\"76\"");  // the first below it
    const Topology first = parse_topology(text);
    EXPECT_EQ(warning(first, "slow_switch_link").subject, "0000:0c:00.0");
    EXPECT_EQ(*first.machine().cpus[0].devices[0].link_width, 76);
    const Topology second = parse_topology(first.to_xml());
    EXPECT_EQ(first.digest(), second.digest());
    EXPECT_THAT(names_of(second.warnings()), Not(Contains("slow_switch_link")));
}

TEST(SanityTest, RefusesWhatMakesNoMachine) {
    const std::string text = read_data("nccl/h200x8_vm.xml");
    const auto twice = Topology::parse(replaced(text, "0000:00:07.0", "0000:00:06.0"), "t.xml", {});
    EXPECT_EQ(twice.status().message(),
              "t.xml: two GPUs have the bus id 0000:00:06.0; on one host each needs its own");
    const auto assumed = Topology::parse(text, "t.xml", {.assume = {.sm = 9}});
    EXPECT_EQ(assumed.status().message(), "t.xml: assume sm=9: must be from 10 to 999");
    EXPECT_EQ(Topology::load("/nowhere.xml", {}).status().message(),
              "cannot read /nowhere.xml: No such file or directory");
}

}  // namespace
}  // namespace pccl::topo
