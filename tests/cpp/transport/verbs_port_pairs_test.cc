// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "csrc/transport/verbs/gid_choice.h"
#include "csrc/transport/verbs/port_pairs.h"

namespace pccl::transport::verbs {
namespace {

using sys::verbs::GidEntry;
using sys::verbs::GidType;
using sys::verbs::RawGid;
using testing::ElementsAre;

/// Returns the GID of an IPv4 or IPv6 address.
RawGid ip_gid(const std::string& address) {
    RawGid gid{};
    if (::inet_pton(AF_INET6, address.c_str(), gid.data()) == 1) return gid;
    gid[10] = gid[11] = 0xff;
    EXPECT_EQ(::inet_pton(AF_INET, address.c_str(), gid.data() + 12), 1) << address;
    return gid;
}

std::vector<RawGid> ip_gids(const std::vector<std::string>& addresses) {
    std::vector<RawGid> gids(addresses.size());
    std::ranges::transform(addresses, gids.begin(), ip_gid);
    return gids;
}

/// Ports of this end in networks of `bits` bits; of IPv4 by those of the mapped address.
std::vector<LanePair> pairs_of(const std::vector<std::string>& here,
                               const std::vector<std::string>& peer, int bits = 96 + 24) {
    std::vector<SubnetGid> own;
    for (const RawGid& gid : ip_gids(here)) own.push_back({gid, bits});
    return pair_lanes(own, ip_gids(peer));
}

TEST(PortPairsTest, PortsOfOneSubnetAreConnectedWhateverTheirOrder) {
    EXPECT_THAT(pairs_of({"10.0.0.2", "10.0.1.2"}, {"10.0.0.1", "10.0.1.1"}),
                ElementsAre(LanePair{0, 0}, LanePair{1, 1}));
    EXPECT_THAT(pairs_of({"10.0.0.2", "10.0.1.2"}, {"10.0.1.1", "10.0.0.1"}),
                ElementsAre(LanePair{1, 0}, LanePair{0, 1}));
    EXPECT_THAT(pairs_of({"fd00:0:0:1::2", "fd00:0:0:2::2"}, {"fd00:0:0:2::1"}, 64),
                ElementsAre(LanePair{1, 0}));
}

TEST(PortPairsTest, QueuePairsOfOnePortKeepTheirOrder) {
    EXPECT_THAT(
        pairs_of({"10.0.1.2", "10.0.1.2"}, {"10.0.0.1", "10.0.1.1", "10.0.0.1", "10.0.1.1"}),
        ElementsAre(LanePair{0, 1}, LanePair{1, 3}));
    EXPECT_THAT(pairs_of({"10.0.0.2", "10.0.0.3"}, {"10.0.0.5", "10.0.0.4"}),
                ElementsAre(LanePair{0, 0}, LanePair{1, 1}))
        << "both are in one subnet";
}

TEST(PortPairsTest, APortWhoseSubnetTheOtherEndLacksHasNoPartner) {
    EXPECT_THAT(pairs_of({"10.0.1.2", "10.0.2.2"}, {"10.0.0.1", "10.0.1.1"}),
                ElementsAre(LanePair{0, 1}));
}

TEST(PortPairsTest, WithoutACommonSubnetTheOrderDecides) {
    EXPECT_THAT(pairs_of({"10.1.0.2", "10.1.1.2", "10.1.2.2"}, {"10.0.0.1", "10.0.1.1"}),
                ElementsAre(LanePair{0, 0}, LanePair{1, 1}))
        << "routers connect them";
    EXPECT_THAT(pairs_of({"10.0.0.2", "10.0.1.2"}, {"10.0.1.1", "10.0.0.1"}, 0),
                ElementsAre(LanePair{0, 0}, LanePair{1, 1}))
        << "the subnets are unknown";
}

TEST(PortPairsTest, PortsOfUnknownSubnetsAreConnectedByOrderBesideOthers) {
    const std::vector<SubnetGid> here{{ip_gid("fe80::2"), 0}, {ip_gid("10.0.1.2"), 120}};
    EXPECT_THAT(pair_lanes(here, ip_gids({"10.0.1.1", "fe80::1", "fe80::3"})),
                ElementsAre(LanePair{1, 0}, LanePair{0, 1}));
    EXPECT_THAT(pair_lanes(here, ip_gids({"10.0.1.1", "10.0.1.3"})), ElementsAre(LanePair{1, 0}))
        << "the second is in the subnet of a port that is taken";
}

TEST(PortPairsTest, SubnetsEndWithinBytes) {
    const SubnetGid own{ip_gid("10.0.0.130"), 96 + 25};
    EXPECT_TRUE(shares_subnet(ip_gid("10.0.0.255"), own));
    EXPECT_FALSE(shares_subnet(ip_gid("10.0.0.127"), own));
    EXPECT_TRUE(shares_subnet(own.gid, {own.gid, 128}));
    EXPECT_FALSE(shares_subnet(ip_gid("10.0.0.131"), {own.gid, 128}));
}

TEST(PortPairsTest, TheSubnetOfAPortIsThatOfItsAddress) {
    const auto network = [](const char* ip, int bits) {
        return sys::Interface{
            .name = "eth", .address = sys::Address::from_ip(ip, 0).value(), .prefix_bits = bits};
    };
    const std::vector<sys::Interface> networks{network("10.0.0.1", 8), network("10.0.1.1", 20),
                                               network("fd00::1", 56), network("fe80::1", 64)};
    const auto bits_of = [&](const char* ip, GidType type = GidType::kRoceV2) {
        return subnet_bits_of(GidEntry{.gid = ip_gid(ip), .type = type}, networks);
    };
    EXPECT_EQ(bits_of("10.0.1.1"), 96 + 20);
    EXPECT_EQ(bits_of("10.0.0.1", GidType::kRoceV1), 96 + 8);
    EXPECT_EQ(bits_of("10.0.0.2"), 0) << "of no interface here";
    EXPECT_EQ(bits_of("fd00::1"), 56);
    EXPECT_EQ(bits_of("fe80::1"), 0) << "alike in all networks";
    EXPECT_EQ(bits_of("fe80::9", GidType::kInfiniband), 64);
}

}  // namespace
}  // namespace pccl::transport::verbs
