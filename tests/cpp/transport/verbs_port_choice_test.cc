// SPDX-License-Identifier: Apache-2.0

// Which ports are used, and why others are not.
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/transport/verbs/port_choice.h"

namespace pccl::transport::verbs {
namespace {

using sys::verbs::DeviceInfo;
using sys::verbs::GidEntry;
using sys::verbs::GidType;
using sys::verbs::PortInfo;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

PortInfo active_port(int number, bool is_ethernet = true) {
    GidEntry gid{.index = 3, .gid = {}, .type = GidType::kRoceV2};
    gid.gid[15] = 1;
    return {.number = number,
            .is_active = true,
            .state = "ACTIVE",
            .is_ethernet = is_ethernet,
            .gids = {gid}};
}

DeviceInfo card(std::string name, std::vector<PortInfo> ports) {
    DeviceInfo device;
    device.name = std::move(name);
    device.ports = std::move(ports);
    return device;
}

/// Returns "mlx5_0:1" for a usable port, "mlx5_0:1: why not" for others.
std::vector<std::string> judged(std::vector<DeviceInfo> devices, const PortWishes& wishes = {}) {
    std::vector<std::string> texts;
    for (const JudgedPort& port : judge_ports(wishes, std::move(devices)))
        texts.push_back(port.is_usable() ? port.name()
                                         : concat(port.name(), ": ", port.refusal().message()));
    return texts;
}

TEST(PortChoiceTest, TakesActivePortsInTheOrderOfTheirNames) {
    PortInfo down = active_port(2);
    down.is_active = false;
    down.state = "DOWN";
    EXPECT_THAT(judged({card("mlx5_1", {active_port(1)}), card("mlx5_0", {active_port(1), down})}),
                ElementsAre("mlx5_0:1", HasSubstr("mlx5_0:2: its state is DOWN"), "mlx5_1:1"));
}

TEST(PortChoiceTest, AllPortsHaveTheLinkLayerOfTheFirstUsable) {
    PortInfo without_gid = active_port(1, false);
    without_gid.gids.clear();
    EXPECT_THAT(judged({card("a", {without_gid}), card("b", {active_port(1)}),
                        card("c", {active_port(1, false)}), card("d", {active_port(1)})}),
                ElementsAre(HasSubstr("a:1: its GID table is empty"), "b:1",
                            HasSubstr("c:1: its link layer differs from the first port's"), "d:1"));
}

TEST(PortChoiceTest, TakesEightPortsAtMost) {
    std::vector<PortInfo> ports;
    for (int number = 1; number <= 9; ++number) ports.push_back(active_port(number));
    const auto all = judged({card("mlx5_0", ports)});
    ASSERT_THAT(all, SizeIs(9));
    EXPECT_EQ(all[7], "mlx5_0:8");
    EXPECT_THAT(all[8], HasSubstr("mlx5_0:9: 8 ports are used at most; PCCL_IB_HCA"));
}

TEST(PortChoiceTest, EmulatedDevicesAreUsedWhereTheyAreNamed) {
    DeviceInfo rxe = card("rxe0", {active_port(1)});
    rxe.is_soft = true;
    EXPECT_THAT(judged({rxe}), ElementsAre(HasSubstr("rxe0:1: an emulated device")));
    EXPECT_THAT(judged({rxe}, {.filter = {}, .soft = true}), ElementsAre("rxe0:1"));
    EXPECT_THAT(judged({rxe}, {.filter = *HcaFilter::parse("=rxe0:1")}), ElementsAre("rxe0:1"));
    EXPECT_THAT(judged({rxe}, {.filter = *HcaFilter::parse("^rxe"), .soft = true}),
                ElementsAre("rxe0:1: left out by PCCL_IB_HCA"));
    DeviceInfo siw = card("siw0", {active_port(1)});
    siw.is_soft = siw.is_iwarp = true;
    EXPECT_THAT(judged({siw}), ElementsAre(HasSubstr("siw0:1: an iWARP device")));
}

TEST(PortChoiceTest, AGidIndexThatThePortDoesNotHaveIsTheReason) {
    EXPECT_THAT(judged({card("mlx5_0", {active_port(1)})}, {.filter = {}, .gid_index = 2}),
                ElementsAre(HasSubstr("mlx5_0:1: PCCL_IB_GID_INDEX=2: the port has 1 GIDs")));
}

}  // namespace
}  // namespace pccl::transport::verbs
