// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/file/cluster_file.h"

#include <gmock/gmock.h>

#include "csrc/base/text/text.h"

namespace pccl::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr std::string_view kKey = "SHA256:uNiVztksCsDhcc0u9e8BrrJXvZrWI1zSb1nMHFSvx1w";

Result<Description> parse(std::string_view text) { return parse_cluster_file(text, "c.yaml"); }
std::string refusal(std::string_view text) { return parse(text).status().message(); }

/// Two devices at one switch, which has these further keys.
std::string with_switch(std::string_view keys) {
    return concat(R"({"switches": [{"name": "ocs")", keys, R"(}],
        "devices": [{"rank": 0, "ports": {"ocs": 1}}, {"rank": 1, "ports": {"optical": 2}}],
        "phases": {"pair": {"links": [[0, 1]], "duplex": true}}})");
}

std::string with_phase(std::string_view phase) {
    return concat(R"({"devices": [{}, {}, {}], "phases": {"p": )", phase, "}}");
}

TEST(ClusterFileTest, ReadsASwitchWithItsManagement) {
    const auto read = parse(with_switch(concat(
        R"(, "kind": "optical", "dialect": "polatis", "address": "netconf://admin@10.0.0.5:1830",
           "host_key": ")",
        kKey, R"(", "key_file": "/k", "settle_ms": 25, "confirm_timeout_s": 3)")));
    ASSERT_TRUE(read.is_ok()) << read.status().to_string();
    const SwitchDescription& ocs = read->switches.at(0);
    EXPECT_EQ(ocs.management, (Management{"admin", "10.0.0.5", 1830, std::string(kKey), "/k"}));
    EXPECT_EQ(ocs.dialect, "polatis");
    EXPECT_EQ(ocs.settle.count(), 25);
    EXPECT_EQ(ocs.confirm_timeout.count(), 3);
    EXPECT_THAT(read->phase("pair")->links, ElementsAre(RankLink{0, 1}, RankLink{1, 0}));
    const auto circuits = circuits_of(*read, read->phases[0]);
    EXPECT_THAT(circuits->at("ocs"), ElementsAre(Circuit{1, 2}, Circuit{2, 1}));
}

TEST(ClusterFileTest, ReadsAnElectricalSwitchAndItsPorts) {
    const auto read = parse(R"({
        "switches": [{"name": "ocs"}, {"name": "packets", "kind": "electrical"}],
        "devices": [{"ports": {"optical": 1, "electrical": 9}},
                    {"ports": {"optical": 2, "packets": 4}}]})");
    ASSERT_TRUE(read.is_ok()) << read.status().to_string();
    EXPECT_EQ(read->switches[1].kind, SwitchKind::kVlans);
    EXPECT_EQ(read->switches[1].dialect, "pccl-vlan");
    EXPECT_THAT(read->switches[1].ports, ElementsAre(9, 4));
    EXPECT_THAT(read->switches[0].ports, SizeIs(0)) << "nobody else is on an optical one";
    EXPECT_EQ(parse(R"({"switches": [{"name": "e", "dialect": "ietf-interfaces"}],
                        "devices": [{"ports": {"e": 1}}]})")
                  ->switches[0]
                  .kind,
              SwitchKind::kPorts);
    EXPECT_EQ(refusal(with_switch(R"(, "kind": "electrical", "dialect": "polatis")")),
              "c.yaml: switches[0].dialect: must be one of pccl-vlan, ietf-interfaces");
    EXPECT_EQ(refusal(with_switch(R"(, "kind": "acoustic")")),
              "c.yaml: switches[0].kind: must be optical or electrical");
    EXPECT_THAT(refusal(R"({"switches": [{"name": "e", "kind": "electrical"}],
                            "devices": [{"ports": {"e": 4000}}]})"),
                HasSubstr("must be a whole number from 1 to 3994"));
}

TEST(ClusterFileTest, GivesDevicesAFabricWhereNoSwitchIsNamed) {
    const auto read = parse(with_phase(R"({"links": "ring", "duplex": true})"));
    ASSERT_TRUE(read.is_ok()) << read.status().to_string();
    ASSERT_THAT(read->switches, SizeIs(1));
    EXPECT_TRUE(read->switches[0].is_in_process);
    // Ports 1 and 2 are rank 0's, 3 and 4 rank 1's, 5 and 6 rank 2's.
    EXPECT_THAT(circuits_of(*read, read->phases[0])->at("fabric"),
                ElementsAre(Circuit{1, 3}, Circuit{2, 6}, Circuit{3, 1}, Circuit{4, 5},
                            Circuit{5, 4}, Circuit{6, 2}));
}

TEST(ClusterFileTest, ReadsAddresses) {
    for (const auto& [address, host, port] :
         {std::tuple{"netconf://a@h", "h", 830}, std::tuple{"netconf://a@h:1", "h", 1},
          std::tuple{"netconf://a@[fe80::1]:22", "fe80::1", 22},
          std::tuple{"netconf://a@[fe80::1]", "fe80::1", 830}}) {
        const auto read = parse(with_switch(concat(
            R"(, "key_file": "k", "accept_any_host_key": true, "address": ")", address, "\"")));
        ASSERT_TRUE(read.is_ok()) << address << read.status().to_string();
        EXPECT_EQ(read->switches[0].management.host, host);
        EXPECT_EQ(read->switches[0].management.port, port);
    }
    for (const std::string_view address :
         {"ssh://a@h", "netconf://h", "netconf://@h", "netconf://a@", "netconf://a@h:0",
          "netconf://a@h:99999", "netconf://a@[fe80::1", "netconf://a b@h"})
        EXPECT_THAT(refusal(with_switch(concat(R"(, "key_file": "k", "accept_any_host_key": true,
                                                  "address": ")",
                                               address, "\""))),
                    StartsWith("c.yaml: switches[0].address: must be netconf://user@host:port"))
            << address;
}

TEST(ClusterFileTest, RequiresAPinnedHostKeyByDefault) {
    const std::string_view address = R"(, "key_file": "k", "address": "netconf://a@h")";
    EXPECT_THAT(refusal(with_switch(address)),
                StartsWith("c.yaml: switches[0].host_key: must be SHA256: and 43 characters"));
    EXPECT_THAT(refusal(with_switch(concat(address, R"(, "host_key": "MD5:00:11")"))),
                StartsWith("c.yaml: switches[0].host_key: must be SHA256:"));
    EXPECT_THAT(refusal(with_switch(R"(, "address": "netconf://a@h", "host_key": "x")")),
                StartsWith("c.yaml: switches[0].key_file: must name the private key"));
}

TEST(ClusterFileTest, NamesTheKeyThatWasMeant) {
    EXPECT_EQ(refusal(with_switch(R"(, "adress": "netconf://a@h")")),
              "c.yaml: switches[0].adress: is no known key; did you mean address?");
    EXPECT_EQ(refusal(R"({"phasen": {}})"),
              "c.yaml: phasen: is no known key; did you mean phases?");
    EXPECT_EQ(refusal(R"({"a\u009bb\u202ec": {}})"), "c.yaml: a?b?c: is no known key");
    EXPECT_EQ(refusal(R"({"devices": [{"ports": {"fabrik": 1}}]})"),
              "c.yaml: devices[0].ports: names a switch that does not exist; did you mean fabric?");
}

TEST(ClusterFileTest, NamesThePlaceAndTheRightForm) {
    EXPECT_EQ(refusal("{"), "c.yaml: is no JSON, or nested deeper than 8");
    EXPECT_EQ(refusal("[[[[[[[[[[]]]]]]]]]]"), "c.yaml: is no JSON, or nested deeper than 8");
    EXPECT_EQ(refusal("[]"), "c.yaml: must be a mapping of keys to values");
    for (const std::string_view empty : {"{}", R"({"devices": []})"})
        EXPECT_EQ(refusal(empty), "c.yaml: devices: must list the ranks' devices: it has none");
    EXPECT_EQ(refusal(with_switch(R"(, "settle_ms": -1)")),
              "c.yaml: switches[0].settle_ms: must be a whole number from 0 to 600000");
    EXPECT_EQ(refusal(with_switch(R"(, "settle_ms": 18446744073709551615)")),
              "c.yaml: switches[0].settle_ms: must be a whole number from 0 to 600000");
    EXPECT_THAT(refusal(with_switch(R"(, "settle_ms": 2000, "confirm_timeout_s": 2)")),
                StartsWith("c.yaml: switches[0].settle_ms: must be less than the confirm timeout"));
    EXPECT_EQ(refusal(with_switch(R"(, "dialect": "calient")")),
              "c.yaml: switches[0].dialect: must be one of pccl, polatis, polatis-pairs, "
              "openconfig-wavelength-router, pccl-vlan, ietf-interfaces");
    EXPECT_EQ(refusal(R"({"devices": [{"rank": 0}, {"rank": 2}]})"),
              "c.yaml: devices: must have each rank from 0 on once; 1 is missing");
    EXPECT_EQ(refusal(R"({"devices": [{"rank": 0}, {"rank": 0}]})"),
              "c.yaml: devices: must have each rank from 0 on once; 1 is missing");
    EXPECT_EQ(refusal(R"({"devices": [{"ports": {"fabric": 1}}, {"ports": {"fabric": [2, 1]}}]})"),
              "c.yaml: devices[1].ports.fabric: port 1 is another device's already");
    EXPECT_EQ(refusal(with_phase(R"({"links": [[0, 3]]})")),
              "c.yaml: phases.p.links[0]: must be two different ranks from 0 to 2");
    EXPECT_EQ(refusal(with_phase(R"({"links": [[1, 1]]})")),
              "c.yaml: phases.p.links[0]: must be two different ranks from 0 to 2");
    EXPECT_EQ(refusal(with_phase(R"({"links": "tree"})")),
              "c.yaml: phases.p.links: must be ring, or a list of pairs of ranks");
    EXPECT_EQ(refusal(with_phase(R"({"links": [[0, 1], [0, 2], [0, 1]]})")),
              "c.yaml: phase p: no switch has a free port of both ranks for the link 0 -> 1; give "
              "them more ports, or the phase fewer links");
}

TEST(ClusterFileTest, BoundsTheLinksThatAShortFileStandsFor) {
    std::string devices = "{}";
    for (int i = 1; i < 4096; ++i) devices += ",{}";
    std::string phases = R"("p": {"links": "ring"})";
    for (int i = 1; i < 300; ++i) phases += concat(R"(,"p)", i, R"(": {"links": "ring"})");
    EXPECT_EQ(refusal(concat(R"({"devices": [)", devices, R"(], "phases": {)", phases, "}}")),
              "c.yaml: phases: have more than 1048576 links in all");
}

}  // namespace
}  // namespace pccl::cluster
