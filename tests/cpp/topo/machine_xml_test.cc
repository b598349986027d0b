// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/xml/machine_xml.h"

#include <gmock/gmock.h>

#include "csrc/topo/xml/xml_text.h"
#include "tests/cpp/topo/machines.h"

namespace pccl::topo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

Result<Machine> parse_machine(std::string_view text) {
    Warnings warnings;
    return parse_machine_xml(text, "t.xml", Source::kUserFile, warnings);
}

std::string refusal_of_machine(std::string_view text) {
    return parse_machine(text).status().message();
}

std::string with_device(const std::string& attributes, const std::string& inside = "") {
    return "<system version=\"1\">\n<cpu numaid=\"0\">\n<pci busid=\"0000:01:00.0\" " + attributes +
           ">" + inside + "</pci></cpu></system>";
}

TEST(MachineXmlTest, LoadsSavesAndLoadsEveryMachineEqual) {
    for (const std::string& name : files_of("nccl")) {
        Warnings warnings;
        const auto first = parse_machine_xml(read_data(name), name, Source::kUserFile, warnings);
        ASSERT_TRUE(first.is_ok()) << first.status().to_string();
        const auto second = parse_machine(machine_xml(*first));
        ASSERT_TRUE(second.is_ok()) << second.status().to_string();
        EXPECT_TRUE(*first == *second) << name;
        EXPECT_THAT(warnings, IsEmpty()) << name;
    }
}

TEST(MachineXmlTest, KeepsEveryAttributeOfAFile) {
    const std::string text =
        machine_xml(*parse_machine(read_data("nccl/H100-topology-kubernetes.xml")));
    EXPECT_THAT(text, HasSubstr("affinity=\"00000000,000000ff,ffffffff,ffff0000"));
    EXPECT_THAT(text, HasSubstr("<net name=\"mlx5_18\" dev=\"0\" speed=\"200000\" port=\"1\" "
                                "guid=\"0x9a70500003ae6d94\" gdr=\"1\" latency=\"0.000000\" "
                                "maxconn=\"131072\""));
    EXPECT_THAT(text, HasSubstr("<nvlink target=\"0000:1c:00.0\" count=\"5\" tclass=\"0x068000\""));
}

TEST(MachineXmlTest, KeepsTheSourceOfAttributes) {
    const Machine machine = *parse_machine(with_device("class=\"0x030200\""));
    const PciDevice& device = machine.cpus.at(0).devices.at(0);
    EXPECT_EQ(device.class_code.source(), Source::kUserFile);
    EXPECT_FALSE(device.link_width.is_known());
}

TEST(MachineXmlTest, RefusesVersionTwoInOneLine) {
    EXPECT_EQ(parse_machine("<system version=\"2\"/>").status().code(), StatusCode::kUnsupported);
    EXPECT_EQ(refusal_of_machine("<system version=\"2\"/>"),
              "t.xml:1: <system> has version=\"2\", and only 1, NCCL's, is read; 2 is RCCL's, for "
              "AMD's GPUs: give hwloc's XML of the machine instead (lstopo machine.xml)");
    EXPECT_EQ(refusal_of_machine("<system version=\"3\"/>"),
              "t.xml:1: <system> has version=\"3\", and only 1, NCCL's, is read");
}

TEST(MachineXmlTest, NamesThePlaceAndTheRightForm) {
    EXPECT_EQ(refusal_of_machine(with_device("link_width=\"wide\"")),
              "t.xml:3: <pci> has link_width=\"wide\", which must be a whole number from 0 to 255");
    EXPECT_EQ(refusal_of_machine(with_device("", "<nic>\n<net speed=\"-7\"/></nic>")),
              "t.xml:4: <net> has speed=\"-7\", which must be a whole number from -1 to 100000000");
    EXPECT_THAT(refusal_of_machine("<system version=\"1\">\n<cpu><pci/></cpu></system>"),
                StartsWith("t.xml:2: <pci> has no busid"));
    EXPECT_THAT(refusal_of_machine("<graphs version=\"1\"/>"), HasSubstr("the root is <graphs>"));
    EXPECT_THAT(refusal_of_machine("<system version=\"1\">\n<cpu>"),
                StartsWith("t.xml:2: this is no XML"));
    EXPECT_THAT(refusal_of_machine(""), StartsWith("t.xml:1: this is no XML"));
}

TEST(MachineXmlTest, ReadsBusIdsInEverySpelling) {
    const Machine machine = *parse_machine(
        "<system version=\"1\"><cpu><pci busid=\"0D:00.1\"/>"
        "<pci busid=\"00000001:AF:1f.0\"/></cpu></system>");
    EXPECT_EQ(*machine.cpus[0].devices[0].bus_id, "0000:0d:00.1");
    EXPECT_EQ(*machine.cpus[0].devices[1].bus_id, "00000001:af:1f.0");
    EXPECT_THAT(refusal_of_machine(with_device("", "<gpu><nvlink target=\"gpu7\"/></gpu>")),
                HasSubstr("must be a PCI bus id"));
}

TEST(MachineXmlTest, NamesElementsThatItSkips) {
    Warnings warnings;
    const std::string text = with_device("", "<gpu dev=\"0\">\n<xgmi target=\"0\"/></gpu>");
    ASSERT_TRUE(parse_machine_xml(text, "t.xml", Source::kUserFile, warnings).is_ok());
    ASSERT_THAT(names_of(warnings), ElementsAre("unknown_element"));
    EXPECT_EQ(warnings[0].subject, "t.xml:4");
}

TEST(MachineXmlTest, IsBoundedInSizeDepthAndLength) {
    std::string deep = "<system version=\"1\"><cpu>";
    for (int i = 0; i < XmlLimits::kDepth; ++i) deep += "<pci busid=\"0000:00:00.0\">";
    for (int i = 0; i < XmlLimits::kDepth; ++i) deep += "</pci>";
    EXPECT_THAT(refusal_of_machine(deep + "</cpu></system>"), HasSubstr("nested deeper than"));

    const std::string value(XmlLimits::kText + 1, 'f');
    EXPECT_THAT(
        refusal_of_machine("<system version=\"1\"><cpu affinity=\"" + value + "\"/></system>"),
        HasSubstr("is longer than 4096 bytes"));
    EXPECT_THAT(refusal_of_machine(std::string(XmlLimits::kBytes + 1, ' ')),
                HasSubstr("at most 8388608"));
}

TEST(MachineXmlTest, TakesLongValuesAndManyAttributes) {
    const std::string affinity(2000, 'f');
    std::string attributes = "affinity=\"" + affinity + "\"";
    for (int i = 0; i < 40; ++i) attributes += " x" + std::to_string(i) + "=\"" + affinity + "\"";
    const Machine machine =
        *parse_machine("<system version=\"1\"><cpu " + attributes + "/></system>");
    EXPECT_EQ(*machine.cpus[0].affinity, affinity);
    EXPECT_EQ(machine.cpus[0].extras.size(), 40U);
}

// NCCL reads what stands before "/>" as one more attribute.
TEST(MachineXmlTest, WritesNoSpaceAtTheEndOfAnElement) {
    EXPECT_EQ(load("nccl/h200x8_vm.xml").to_xml().find(" />"), std::string::npos);
    const auto odd = Topology::parse(
        "<system version=\"1\"><cpu numaid=\"0\"><nic><net name=\"a /&gt; b\" "
        "dev=\"0\"/></nic></cpu>"
        "</system>",
        "odd", {});
    ASSERT_TRUE(odd.is_ok());
    EXPECT_TRUE(Topology::parse(odd->to_xml(), "again", {})->machine() == odd->machine())
        << "values are left alone";
}

}  // namespace
}  // namespace pccl::topo
