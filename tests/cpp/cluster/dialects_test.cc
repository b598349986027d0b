// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/drivers/dialects.h"

#include <gmock/gmock.h>

#include "csrc/base/text/text.h"

namespace pccl::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Dialect& dialect(std::string_view name) { return *find_dialect(name); }

Result<Circuits> circuits_of_data(std::string_view name, std::string_view data) {
    const auto reply =
        sys::read_xml(concat("<rpc-reply xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\"><data>",
                             data, "</data></rpc-reply>"));
    return circuits_in(dialect(name), *reply);
}

TEST(DialectTest, SpellsOurModule) {
    EXPECT_EQ(edit_xml(dialect("pccl"), {{3, 4}}, {{1, 2}}),
              "<cross-connects xmlns=\"urn:pccl:yang:optical-switch\">"
              "<pair nc:operation=\"delete\"><ingress>3</ingress></pair>"
              "<pair><ingress>1</ingress><egress>2</egress></pair></cross-connects>");
    EXPECT_EQ(filter_xml(dialect("pccl")),
              "<cross-connects xmlns=\"urn:pccl:yang:optical-switch\"></cross-connects>");
}

// As the public clients of Polatis switches have it.
TEST(DialectTest, SpellsPolatis) {
    EXPECT_EQ(edit_xml(dialect("polatis"), {}, {{1, 17}}),
              "<cross-connects xmlns=\"http://www.polatis.com/yang/optical-switch\">"
              "<pair><ingress>1</ingress><egress>17</egress></pair></cross-connects>");
    EXPECT_THAT(edit_xml(dialect("polatis-pairs"), {}, {{1, 17}}), HasSubstr("<pairs><ingress>1"));
}

// By the paths of openconfig-wavelength-router 1.2.0.
TEST(DialectTest, SpellsOpenConfig) {
    const std::string xml = edit_xml(dialect("openconfig-wavelength-router"), {{2, 3}}, {{1, 2}});
    EXPECT_EQ(xml,
              "<wavelength-router xmlns=\"http://openconfig.net/yang/wavelength-router\">"
              "<media-channels><channel nc:operation=\"delete\"><index>2</index></channel>"
              "<channel><index>1</index><config><index>1</index><admin-status>ENABLED"
              "</admin-status></config><source><config><port-name>1</port-name></config></source>"
              "<dest><config><port-name>2</port-name></config></dest></channel>"
              "</media-channels></wavelength-router>");
}

TEST(DialectTest, SpellsVlansOfOurModule) {
    EXPECT_EQ(edit_xml(dialect("pccl-vlan"), {{3, 101}}, {{1, 101}, {2, 101}}),
              "<ports xmlns=\"urn:pccl:yang:electrical-switch\">"
              "<port nc:operation=\"delete\"><number>3</number></port>"
              "<port><number>1</number><vlan>101</vlan></port>"
              "<port><number>2</number><vlan>101</vlan></port></ports>");
}

// RFC 8343: `enabled` is true where it is not said; `type` must be there.
TEST(DialectTest, TurnsInterfacesOnAndOff) {
    EXPECT_EQ(edit_xml(dialect("ietf-interfaces"), {{3, 1}}, {{1, 1}}),
              "<interfaces xmlns=\"urn:ietf:params:xml:ns:yang:ietf-interfaces\">"
              "<interface><name>3</name><enabled>false</enabled></interface>"
              "<interface><name>1</name>"
              "<type xmlns:ianaift=\"urn:ietf:params:xml:ns:yang:iana-if-type\">"
              "ianaift:ethernetCsmacd</type><enabled>true</enabled></interface></interfaces>");
    const auto read = circuits_of_data(
        "ietf-interfaces",
        "<interfaces xmlns=\"urn:ietf:params:xml:ns:yang:ietf-interfaces\">"
        "<interface><name>1</name></interface>"
        "<interface><name>2</name><enabled>false</enabled></interface>"
        "<interface><name>3</name><enabled> true </enabled></interface>"
        "<interface><name>management0</name><enabled>true</enabled></interface></interfaces>");
    ASSERT_TRUE(read.is_ok()) << read.status().to_string();
    EXPECT_EQ(*read, (Circuits{{1, 1}, {3, 1}}));
    EXPECT_THAT(circuits_of_data("ietf-interfaces",
                                 "<interfaces "
                                 "xmlns=\"urn:ietf:params:xml:ns:yang:ietf-interfaces\">"
                                 "<interface><name>1</name><enabled>maybe</enabled></interface>"
                                 "</interfaces>")
                    .status()
                    .message(),
                HasSubstr("neither on nor off"));
}

TEST(DialectTest, PortsOfAnElectricalSwitchShareAVlan) {
    const Circuits members = {{1, 101}, {2, 101}, {7, 105}};
    const auto read = circuits_of_data("pccl-vlan", edit_xml(dialect("pccl-vlan"), {}, members));
    ASSERT_TRUE(read.is_ok()) << read.status().to_string();
    EXPECT_EQ(*read, members);
}

TEST(DialectTest, ReadsWhereNoLightComesIn) {
    EXPECT_EQ(light_filter_xml(dialect("pccl")),
              "<state xmlns=\"urn:pccl:yang:optical-switch\"></state>");
    const auto dark = [](std::string_view state) {
        return dark_in(dialect("pccl"), *sys::read_xml(concat("<rpc-reply><data><state>", state,
                                                              "</state></data></rpc-reply>")));
    };
    EXPECT_THAT(dark("<settled>true</settled><dark>7</dark><dark> 3 </dark>"), ElementsAre(3, 7));
    EXPECT_THAT(dark("<dark>no port</dark>"), ElementsAre());
    EXPECT_EQ(light_filter_xml(dialect("polatis")), "");
}

TEST(DialectTest, ReadsBackWhatItWrites) {
    const Circuits circuits = {{1, 2}, {2, 1}, {65535, 3}};
    for (const std::string_view name :
         {"pccl", "polatis", "polatis-pairs", "openconfig-wavelength-router"}) {
        const auto read = circuits_of_data(name, edit_xml(dialect(name), {}, circuits));
        ASSERT_TRUE(read.is_ok()) << name << read.status().to_string();
        EXPECT_EQ(*read, circuits) << name;
    }
}

TEST(DialectTest, TakesNoListForNoCircuits) {
    EXPECT_THAT(*circuits_of_data("pccl", ""), ElementsAre());
    EXPECT_THAT(*circuits_of_data("openconfig-wavelength-router", "<wavelength-router/>"),
                ElementsAre());
}

TEST(DialectTest, RefusesCircuitsThatCannotBe) {
    const auto fault = [](std::string_view pairs) {
        return circuits_of_data(
                   "pccl", concat("<cross-connects xmlns=\"urn:pccl:yang:optical-switch\">", pairs,
                                  "</cross-connects>"))
            .status()
            .message();
    };
    EXPECT_THAT(fault("<pair><ingress>1</ingress></pair>"), HasSubstr("no number"));
    EXPECT_THAT(fault("<pair><ingress>0</ingress><egress>1</egress></pair>"),
                HasSubstr("no number from 1 to 65535"));
    EXPECT_THAT(fault("<pair><ingress>1</ingress><egress>2</egress></pair>"
                      "<pair><ingress>3</ingress><egress>2</egress></pair>"),
                HasSubstr("two circuits leave by port 2"));
    EXPECT_THAT(fault("<pair><ingress>1</ingress><egress>2</egress></pair>"
                      "<pair><ingress>1</ingress><egress>3</egress></pair>"),
                HasSubstr("two circuits begin at port 1"));
}

}  // namespace
}  // namespace pccl::cluster
