#include "csrc/sys/socket/interfaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace pccl::sys {
namespace {

Interface made_up(const std::string& name, const std::string& ip, bool running = true) {
    return {.name = name,
            .index = 1,
            .address = Address::from_ip(ip, 0).value(),
            .running = running,
            .loopback = name == "lo"};
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
        Choice{"", "docker0", "172.17.0.1"}, Choice{"eth", "eth0", "10.1.2.3"},
        Choice{"ib,eth", "ib0", "192.168.7.1"}, Choice{"nope, eth", "eth0", "10.1.2.3"},
        Choice{"=eth10", "eth10", "10.9.0.1"}, Choice{"=eth1,lo", "lo", "127.0.0.1"},
        Choice{"eth1", "eth10", "10.9.0.1"}, Choice{"wan", "wan0", "fd99::30"},
        Choice{"^lo,docker", "eth0", "10.1.2.3"}, Choice{"^=lo,docker0,eth0", "eth10", "10.9.0.1"},
        Choice{"10.0.0.0/8", "eth0", "10.1.2.3"}, Choice{"10.9.0.0/16", "eth10", "10.9.0.1"},
        Choice{"192.168.6.0/23", "ib0", "192.168.7.1"},
        Choice{"1.2.3.4/32,fd00::/8", "eth0", "fd00::10"}, Choice{"fd99::/16", "wan0", "fd99::30"},
        Choice{"fe80::20/128", "ib0", "fe80::20"}, Choice{"0.0.0.0/0", "lo", "127.0.0.1"},
        Choice{"::1/128", "lo", "::1"}));

TEST(InterfacesTest, ALonelyHostUsesItsLoopback) {
    const std::vector<Interface> lonely{made_up("eth0", "10.0.0.1", false), made_up("lo", "::1"),
                                        made_up("lo", "127.0.0.1")};
    EXPECT_EQ(choose_interface(lonely, "")->address, Address::from_ip("127.0.0.1", 0).value());
}

TEST(InterfacesTest, SaysWhatThereIsWhenNothingFits) {
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
