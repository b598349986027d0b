// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/socket/interfaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "csrc/base/text/text.h"

namespace pccl::sys {
namespace {

Interface made_up(const std::string& name, const std::string& ip, bool running = true) {
    return {.name = name,
            .index = 1,
            .address = Address::from_ip(ip, 0).value(),
            .running = running,
            .loopback = name == "lo",
            .internal = name.starts_with("docker")};
}

const std::vector<Interface> kHost{
    made_up("lo", "127.0.0.1"),         made_up("lo", "::1"),
    made_up("docker0", "172.17.0.1"),   made_up("eth0", "fe80::10"),
    made_up("eth0", "fd00::10"),        made_up("eth0", "10.1.2.3"),
    made_up("eth1", "10.2.2.3", false), made_up("eth10", "10.9.0.1"),
    made_up("ib0", "192.168.7.1"),      made_up("ib0", "fe80::20"),
    made_up("wan0", "fe80::30"),        made_up("wan0", "fd99::30"),
};

struct Choice {
    std::string spec;
    std::string name;
    std::string ip;
};

class ChooseInterfaceTest : public testing::TestWithParam<Choice> {};

TEST_P(ChooseInterfaceTest, FollowsTheSpec) {
    const auto chosen = choose_interface(kHost, GetParam().spec);
    ASSERT_TRUE(chosen.is_ok()) << chosen.status().to_string();
    EXPECT_EQ(chosen->name, GetParam().name);
    EXPECT_EQ(chosen->address, Address::from_ip(GetParam().ip, 0).value());
}

INSTANTIATE_TEST_SUITE_P(
    MadeUpHost, ChooseInterfaceTest,
    testing::Values(
        Choice{"", "eth0", "10.1.2.3"}, Choice{"^lo", "eth0", "10.1.2.3"},
        Choice{"docker,eth", "docker0", "172.17.0.1"}, Choice{"eth", "eth0", "10.1.2.3"},
        Choice{"ib,eth", "ib0", "192.168.7.1"}, Choice{"nope, eth", "eth0", "10.1.2.3"},
        Choice{"=eth10", "eth10", "10.9.0.1"}, Choice{"=eth1,lo", "lo", "127.0.0.1"},
        Choice{"eth1", "eth10", "10.9.0.1"}, Choice{"wan", "wan0", "fd99::30"},
        Choice{"^lo,docker", "eth0", "10.1.2.3"}, Choice{"^=lo,docker0,eth0", "eth10", "10.9.0.1"},
        Choice{"10.0.0.0/8", "eth0", "10.1.2.3"}, Choice{"10.9.0.0/16", "eth10", "10.9.0.1"},
        Choice{"192.168.6.0/23", "ib0", "192.168.7.1"},
        Choice{"1.2.3.4/32,fd00::/8", "eth0", "fd00::10"}, Choice{"fd99::/16", "wan0", "fd99::30"},
        Choice{"fe80::20/128", "ib0", "fe80::20"}, Choice{"0.0.0.0/0", "eth0", "10.1.2.3"},
        Choice{"::1/128", "lo", "::1"}));

std::vector<std::string> candidates(const std::vector<Interface>& host, std::string_view spec) {
    std::vector<std::string> found;
    const auto interfaces = candidate_interfaces(host, spec);
    for (const Interface& each : interfaces.value()) found.push_back(each.address.ip_text());
    return found;
}

TEST(InterfacesTest, OffersAllThatMayLeadToOtherHostsTheBestFirst) {
    EXPECT_THAT(candidates(kHost, ""), testing::ElementsAre("10.1.2.3", "10.9.0.1", "192.168.7.1",
                                                            "fd00::10", "fd99::30", "172.17.0.1"));
    EXPECT_THAT(candidates(kHost, "ib,eth"),
                testing::ElementsAre("192.168.7.1", "10.1.2.3", "10.9.0.1", "fd00::10"));
    EXPECT_THAT(candidates(kHost, "=eth0"), testing::ElementsAre("10.1.2.3", "fd00::10"));
    EXPECT_THAT(candidates(kHost, "fe80::/10"),
                testing::ElementsAre("fe80::10", "fe80::20", "fe80::30"));
}

TEST(InterfacesTest, TheDefaultRouteComesBeforeOthersAndServiceProcessorsAfterThem) {
    std::vector<Interface> host{made_up("usb0", "169.254.3.1"), made_up("nic0", "10.5.0.1"),
                                made_up("vmbr0", "10.77.0.1"), made_up("nic0", "10.6.0.1"),
                                made_up("br1", "172.17.0.1")};
    host[2].internal = host[2].has_default_route = host[4].internal = true;
    EXPECT_THAT(candidates(host, ""), testing::ElementsAre("10.77.0.1", "10.5.0.1", "10.6.0.1",
                                                           "172.17.0.1", "169.254.3.1"));
    EXPECT_THAT(candidates(host, "^lo"), testing::ElementsAreArray(candidates(host, "")));
}

TEST(InterfacesTest, OffersABoundedNumber) {
    std::vector<Interface> host;
    for (int i = 1; i < 100; ++i) host.push_back(made_up(concat("eth", i), concat("10.0.0.", i)));
    EXPECT_EQ(candidates(host, "").size(), kMostCandidates);
}

TEST(InterfacesTest, ExaminesEveryInterfaceOfThisHost) {
    auto interfaces = list_interfaces().value();
    examine_interfaces(interfaces);
    for (const Interface& each : interfaces)
        EXPECT_FALSE(each.loopback && (each.internal || each.has_default_route)) << each.name;
}

TEST(InterfacesTest, ALonelyHostUsesItsLoopback) {
    const std::vector<Interface> lonely{made_up("eth0", "10.0.0.1", false), made_up("lo", "::1"),
                                        made_up("lo", "127.0.0.1")};
    EXPECT_EQ(choose_interface(lonely, "")->address, Address::from_ip("127.0.0.1", 0).value());
}

TEST(InterfacesTest, ListsTheInterfacesWhenNoneFits) {
    for (const std::string spec :
         {"=eth", "bond", "11.0.0.0/8", "10.2.0.0/16", "^lo,docker,eth,ib,wan"}) {
        const auto status = choose_interface(kHost, spec).status();
        EXPECT_EQ(status.code(), StatusCode::kUnavailable) << spec;
        EXPECT_THAT(status.message(), testing::HasSubstr("eth1 10.2.2.3:0 (down)")) << spec;
    }
    EXPECT_EQ(choose_interface({}, "").status().code(), StatusCode::kUnavailable);
}

TEST(InterfacesTest, RefusesASpecThatCannotBeRead) {
    for (const std::string spec : {"=", "^", "^=", ",", "10.0.0.0/33", "10.0.0.0/", "/8",
                                   "10.0.0/8", "fd00::/129", "10.0.0.0/-1", "10.0.0.0/8x"})
        EXPECT_EQ(choose_interface(kHost, spec).status().code(), StatusCode::kInvalidArgument)
            << spec;
}

TEST(InterfacesTest, ListsTheLoopbackOfThisHost) {
    const auto interfaces = list_interfaces();
    ASSERT_TRUE(interfaces.is_ok()) << interfaces.status().to_string();
    EXPECT_TRUE(std::any_of(interfaces->begin(), interfaces->end(), [](const Interface& i) {
        return i.loopback && i.address.is_loopback() && i.index > 0;
    }));
}

}  // namespace
}  // namespace pccl::sys
