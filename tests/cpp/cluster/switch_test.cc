// SPDX-License-Identifier: Apache-2.0

// Switches by their names, and their light.
#include "csrc/cluster/switch.h"

#include <gmock/gmock.h>

#include <pccl/phases.h>
#include "tests/cpp/cluster/three_devices.h"

namespace pccl::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(CommandsTest, FindsSwitchesByTheirNames) {
    EXPECT_EQ(context_->switch_called("spares").status().message(),
              "there is no switch spares; did you mean spare?");
    EXPECT_EQ(context_->switch_called("x").status().message(),
              "there is no switch x; switches are: ocs, spare, vlans, ports");
    EXPECT_EQ(context_->optical_switch("vlans").status().message(), "switch vlans is electrical");
    EXPECT_EQ(optical().description().kind, SwitchKind::kOptical);
}

TEST_F(CommandsTest, ReportsPortsWithoutLight) {
    go_to("ring");
    EXPECT_THAT(*optical().dark(std::chrono::seconds(20)), IsEmpty());
    ocs().dark = {2};
    EXPECT_THAT(*optical().dark(std::chrono::seconds(20)), ElementsAre(2));
    ocs().is_gone = true;
    ocs().traits.drop = "get-config";
    EXPECT_THAT(optical().dark(std::chrono::seconds(20)).status().message(),
                HasSubstr("switch ocs: "));
}

}  // namespace
}  // namespace pccl::cluster
