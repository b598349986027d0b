// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "csrc/transport/verbs/gid_choice.h"

namespace pccl::transport::verbs {
namespace {

using sys::verbs::GidEntry;
using sys::verbs::GidType;
using testing::HasSubstr;

/// Returns the entry of an IP address; IPv4 ones are mapped into IPv6.
GidEntry gid_of(int index, const std::string& ip, GidType type = GidType::kRoceV2) {
    GidEntry entry{.index = index, .type = type};
    if (::inet_pton(AF_INET6, ip.c_str(), entry.gid.data()) == 1) return entry;
    entry.gid[10] = entry.gid[11] = 0xff;
    EXPECT_EQ(::inet_pton(AF_INET, ip.c_str(), entry.gid.data() + 12), 1) << ip;
    return entry;
}

sys::Interface interface_at(const std::string& ip, int prefix_bits) {
    return {.name = "eth",
            .index = 1,
            .address = sys::Address::from_ip(ip, 0).value(),
            .prefix_bits = prefix_bits};
}

sys::verbs::PortInfo ethernet_port(std::vector<GidEntry> gids) {
    sys::verbs::PortInfo port;
    port.is_ethernet = true;
    port.gids = std::move(gids);
    return port;
}

/// Returns the index of the entry that is chosen.
int chosen(const std::vector<GidEntry>& gids, const std::vector<sys::Interface>& interfaces = {}) {
    const auto choice = choose_gid(ethernet_port(gids), interfaces, -1);
    EXPECT_TRUE(choice.is_ok()) << choice.status().to_string();
    return choice.is_ok() ? choice->entry.index : -1;
}

// The table of a usual port: each address as version 1 and 2.
const std::vector<GidEntry> kTable{
    gid_of(0, "fe80::1", GidType::kRoceV1),     gid_of(1, "fe80::1"),
    gid_of(2, "10.0.0.1", GidType::kRoceV1),    gid_of(3, "10.0.0.1"),
    gid_of(4, "fd00::1", GidType::kRoceV1),     gid_of(5, "fd00::1"),
    gid_of(6, "192.168.7.1", GidType::kRoceV1), gid_of(7, "192.168.7.1")};

TEST(GidChoiceTest, Version2ComesBeforeTheSubnet) {
    EXPECT_EQ(chosen({gid_of(0, "10.0.0.1", GidType::kRoceV1), gid_of(1, "fe80::1")},
                     {interface_at("10.0.0.7", 24)}),
              1);
    EXPECT_EQ(chosen({gid_of(4, "10.0.0.1", GidType::kRoceV1)}), 4) << "there is no other";
}

TEST(GidChoiceTest, TheSubnetOfAnInterfaceComesBeforeOthers) {
    EXPECT_EQ(chosen(kTable, {interface_at("192.168.7.9", 24)}), 7);
    EXPECT_EQ(chosen(kTable, {interface_at("fd00::9", 64)}), 5);
    EXPECT_EQ(chosen(kTable, {interface_at("172.16.0.1", 16), interface_at("192.168.7.9", 24)}), 7)
        << "any of them";
}

TEST(GidChoiceTest, SubnetsEndWithinBytes) {
    const std::vector<GidEntry> gids{gid_of(0, "10.0.8.1"), gid_of(1, "10.0.7.1")};
    EXPECT_EQ(chosen(gids, {interface_at("10.0.4.1", 22)}), 1);
    EXPECT_EQ(chosen(gids, {interface_at("10.0.4.1", 20)}), 0) << "both are in it";
    EXPECT_EQ(chosen(gids, {interface_at("10.0.7.1", 32)}), 1);
    EXPECT_EQ(chosen({gid_of(0, "fd00:0:0:8::1"), gid_of(1, "fd00:0:0:7::1")},
                     {interface_at("fd00:0:0:4::9", 62)}),
              1);
}

TEST(GidChoiceTest, TheFamilyOfTheInterfacesComesNext) {
    EXPECT_EQ(chosen(kTable, {interface_at("172.16.0.1", 16)}), 3);
    EXPECT_EQ(chosen(kTable, {interface_at("fc00::1", 64)}), 5) << "global before link-local";
    EXPECT_EQ(chosen({gid_of(0, "10.0.0.1"), gid_of(1, "fe80::1")}, {interface_at("fc00::1", 64)}),
              1);
}

TEST(GidChoiceTest, WithoutInterfacesIpv4ComesFirstAndLinkLocalLast) {
    EXPECT_EQ(chosen(kTable), 3);
    EXPECT_EQ(chosen({gid_of(0, "fe80::1"), gid_of(1, "fd00::1")}), 1);
    EXPECT_EQ(chosen({gid_of(0, "fd00::1"), gid_of(1, "10.0.0.1")}), 1);
    EXPECT_EQ(chosen({gid_of(5, "10.0.0.2"), gid_of(3, "10.0.0.1")}), 3);
    EXPECT_EQ(chosen({gid_of(2, "fe80::2"), gid_of(1, "fe80::1")}), 1);
}

TEST(GidChoiceTest, AForcedIndexIsTakenOrMissing) {
    const auto port = ethernet_port(kTable);
    for (const GidEntry& entry : kTable)
        EXPECT_EQ(choose_gid(port, {}, entry.index)->entry.index, entry.index);
    EXPECT_THAT(choose_gid(port, {}, 2)->reason, HasSubstr("PCCL_IB_GID_INDEX"));
    const Status missing = choose_gid(port, {}, 8).status();
    EXPECT_EQ(missing.code(), StatusCode::kUnavailable);
    EXPECT_THAT(missing.message(), HasSubstr("PCCL_IB_GID_INDEX=8"));
}

TEST(GidChoiceTest, AnInfiniBandPortTakesItsFirst) {
    sys::verbs::PortInfo port;
    port.gids = {gid_of(0, "fe80::2", GidType::kInfiniband),
                 gid_of(1, "10.0.0.1", GidType::kInfiniband)};
    const std::vector<sys::Interface> interfaces{interface_at("10.0.0.7", 24)};
    EXPECT_EQ(choose_gid(port, interfaces, -1)->entry.index, 0);
    EXPECT_EQ(choose_gid(port, interfaces, 1)->entry.index, 1);
}

TEST(GidChoiceTest, AnEmptyTableNamesWhatIsMissing) {
    const Status ethernet = choose_gid(ethernet_port({}), {}, -1).status();
    EXPECT_EQ(ethernet.code(), StatusCode::kUnavailable);
    EXPECT_THAT(ethernet.message(), HasSubstr("IP address"));
    const Status infiniband = choose_gid(sys::verbs::PortInfo(), {}, -1).status();
    EXPECT_EQ(infiniband.code(), StatusCode::kUnavailable);
    EXPECT_THAT(infiniband.message(), HasSubstr("subnet manager"));
}

TEST(GidChoiceTest, TheReasonNamesVersionAndSubnet) {
    const auto port = ethernet_port(kTable);
    const std::vector<sys::Interface> interfaces{interface_at("192.168.7.9", 24)};
    EXPECT_EQ(choose_gid(port, interfaces, -1)->reason, "RoCE v2, of 192.168.7.0/24");
    EXPECT_EQ(choose_gid(port, {}, -1)->reason, "RoCE v2, in no subnet of this process");
}

}  // namespace
}  // namespace pccl::transport::verbs
