// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "csrc/topo/machine/completion.h"
#include "tests/cpp/topo/machines.h"
#include "tests/cpp/topo/sane_machines.h"

namespace pccl::topo {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(SanityTest, FindsNothingWrongWithHealthyMachines) {
    EXPECT_THAT(load("nccl/H100-topology-kubernetes.xml").warnings(), IsEmpty());
    EXPECT_THAT(load("nccl/dgx1v_cubemesh.xml").warnings(), IsEmpty());
    EXPECT_THAT(load("nccl/dgx2_16xV100.xml").warnings(), IsEmpty());
    EXPECT_THAT(load("nccl/panlichen_8x3090_topo.xml").warnings(), IsEmpty());
}

TEST(SanityTest, WarnsOfHiddenAttributes) {
    const Topology vm = load("nccl/h200x8_vm.xml");
    EXPECT_THAT(names_of(vm.warnings()),
                ElementsAre("unknown_numa", "hidden_switches", "unknown_link_width"));
    EXPECT_EQ(warning(vm, "unknown_link_width").subject, "0000:00:06.0 and 7 more");
    EXPECT_EQ(width(vm, "gpu0", "cpu0"), 48) << "gen 5, and 16 lanes assumed";
}

TEST(SanityTest, RepairsSpeedsAndWidthsThatCannotBe) {
    for (const char* speed : {"", "Unknown", "0 GT/s", "fast"}) {
        const Topology topology = parse_topology(
            replaced(read_data("nccl/h100_1gpu_1nic.xml"), "32.0 GT/s PCIe", speed, 2));
        EXPECT_EQ(warning(topology, "unknown_link_speed").subject, "0000:0f:00.0") << speed;
        EXPECT_EQ(width(topology, "gpu0", "net0"), 48) << speed;
    }
    for (const char* lanes : {"0", "255", ""}) {
        const std::string attribute = std::string("link_width=\"") + lanes + "\"";
        const Topology topology = parse_topology(
            replaced(read_data("nccl/h100_1gpu_1nic.xml"), "link_width=\"16\"", attribute));
        EXPECT_EQ(warning(topology, "unknown_link_width").subject, "0000:0c:00.0") << lanes;
    }
}

/// As many GPUs of a kind, right below the CPU, as a file without any `<nvlink>` has them.
std::string gpus_without_nvlinks(int count, int sm) {
    std::string text = "<system version=\"1\"><cpu numaid=\"0\">";
    for (int i = 0; i < count; ++i) {
        const std::string number = std::to_string(i);
        text += "<pci busid=\"0000:" + number +
                "0:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">"
                "<gpu dev=\"" +
                number + "\" sm=\"" + std::to_string(sm) + "\" gdr=\"1\"/></pci>";
    }
    return text + "</cpu></system>";
}

TEST(SanityTest, WarnsOfGpusThatMostlyHaveNvLinksAndAreDescribedWithoutOne) {
    const Topology without = parse_topology(gpus_without_nvlinks(2, 90));
    EXPECT_EQ(warning(without, "undescribed_nvlinks").subject, "0000:00:00.0 and 1 more");
    EXPECT_THAT(warning(without, "undescribed_nvlinks").repair, HasSubstr("assume nvlinks"));
    const LoadOptions has_none{.assume = {.nvlinks = 0}};
    EXPECT_THAT(parse_topology(gpus_without_nvlinks(2, 90), has_none).warnings(), IsEmpty());
    EXPECT_THAT(parse_topology(gpus_without_nvlinks(1, 90)).warnings(), IsEmpty())
        << "nothing to reach";
    EXPECT_THAT(parse_topology(gpus_without_nvlinks(4, 89)).warnings(), IsEmpty())
        << "a card has none";
}

TEST(SanityTest, IsLoudAboutALostNvLink) {
    const std::string link =
        "<nvlink target=\"fffffff:ff:ff.0\" count=\"18\" tclass=\"0x068000\"/>";
    const Topology lost = parse_topology(replaced(read_data("nccl/h200x8_vm.xml"), link, "", 3));
    EXPECT_EQ(warning(lost, "missing_nvlinks").subject, "gpu 3 (0000:00:09.0)");
    EXPECT_EQ(warning(lost, "missing_nvlinks").message,
              "has 0 NVLinks where others have 18: what includes it gets 48 GB/s instead of 370.8");
    const Topology fewer = parse_topology(
        replaced(read_data("nccl/h200x8_vm.xml"), "count=\"18\"", "count=\"12\"", 5));
    EXPECT_EQ(warning(fewer, "missing_nvlinks").subject, "gpu 5 (0000:00:0b.0)");
}

TEST(SanityTest, ComparesTheEndsOfNvLinks) {
    const Topology uneven = parse_topology(
        replaced(read_data("nccl/dgx1v_cubemesh.xml"), "count=\"2\"", "count=\"1\""));
    EXPECT_EQ(warning(uneven, "uneven_nvlink").subject, "0000:06:00.0 and 1 more");
    EXPECT_EQ(width(uneven, "gpu0", "gpu3"), 20);
    EXPECT_EQ(width(uneven, "gpu3", "gpu0"), 20);
    const Topology loops = load("nccl/ncv4-topo.xml");
    EXPECT_EQ(warning(loops, "nvlink_to_itself").subject, "0001:00:00.0 and 3 more");
    EXPECT_THAT(loops.graph().switches(), IsEmpty());
}

TEST(SanityTest, LeavesOutManagementPorts) {
    const std::string text =
        replaced(read_data("nccl/dgx2_16xV100.xml"), "speed=\"100000\"", "speed=\"1000\"");
    const Topology slow = parse_topology(text);
    EXPECT_EQ(warning(slow, "slow_nic").subject, "mlx5_0");
    EXPECT_FALSE(slow.graph().node(slow.graph().find("net0")).usable);
    EXPECT_TRUE(slow.graph().node(slow.graph().find("net1")).usable);
}

TEST(SanityTest, SeesSharedAndUnknownDevices) {
    const std::string gpu = "<gpu dev=\"0\" sm=\"90\" rank=\"0\" gdr=\"1\"/>";
    const Topology shared =
        parse_topology(replaced(read_data("nccl/h100_1gpu_1nic.xml"), gpu,
                                gpu + "<gpu dev=\"0\" sm=\"90\" rank=\"1\" gdr=\"1\"/>"));
    EXPECT_EQ(warning(shared, "shared_gpu").subject, "0000:0f:00.0");
    EXPECT_EQ(shared.graph().gpus().size(), 2U);
    EXPECT_EQ(shared.paths().path(shared.graph().gpus()[0], shared.graph().gpus()[1]).type,
              PathType::kLoc);
    const Topology partial = load("nccl/g5.48xl-topo.xml");
    EXPECT_EQ(warning(partial, "unknown_device").subject, "0000:00:16.0 and 8 more");
}

TEST(SanityTest, StrictMakesWarningsErrors) {
    const auto strict = Topology::load(data_path("nccl/h200x8_vm.xml"), {.strict = true});
    EXPECT_EQ(strict.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(strict.status().message(),
                HasSubstr("unknown_numa, hidden_switches, unknown_link_width"));
    EXPECT_TRUE(Topology::load(data_path("nccl/dgx1v_cubemesh.xml"), {.strict = true}).is_ok());
}

TEST(SanityTest, ARepairedMachineLoadsWithoutTheWarning) {
    const Topology first = load("nccl/h200x8_vm.xml");
    const Topology second = parse_topology(first.to_xml());
    EXPECT_TRUE(first.machine() == second.machine());
    EXPECT_EQ(first.digest(), second.digest());
    EXPECT_THAT(names_of(second.warnings()), Not(Contains("unknown_link_width")));
}

}  // namespace
}  // namespace pccl::topo
