// SPDX-License-Identifier: Apache-2.0

// Commands to one switch or several, and those that a switch refuses.
#include "csrc/cluster/command.h"

#include <gmock/gmock.h>

#include <pccl/phases.h>
#include "tests/cpp/cluster/three_devices.h"

namespace pccl::cluster {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(CommandsTest, CommandsOneSwitchByItself) {
    go_to("ring");
    ASSERT_TRUE(optical().command(Command::disconnect(3)).is_ok());
    ASSERT_TRUE(optical().command(Command::cross_connect(13, 21)).is_ok());
    EXPECT_EQ(ocs().running(), kRingOfThree) << "only queued";
    const auto report = optical().commit(options_);
    ASSERT_TRUE(report.is_ok()) << report.status().to_string();
    EXPECT_EQ(report->ending, Ending::kSwitched);
    EXPECT_EQ(ocs().running(), (Circuits{{1, 2}, {2, 3}, {13, 21}}));
    EXPECT_THAT(optical().commands(), IsEmpty());
    EXPECT_EQ(context_->current(), "") << "that is no phase";
    EXPECT_EQ(context_->generation(), 2U);
    EXPECT_THAT(context_->audit().back(), HasSubstr("(commands)"));
    expect_free();
    go_to("ring");
    EXPECT_EQ(ocs().running(), kRingOfThree);
}

TEST_F(CommandsTest, RecognizesThePhaseThatCommandsLeadTo) {
    go_to("star");
    for (const Command& each :
         {Command::disconnect(11), Command::cross_connect(2, 3), Command::cross_connect(3, 1)})
        ASSERT_TRUE(optical().command(each).is_ok());
    ASSERT_TRUE(optical().commit(options_).is_ok());
    EXPECT_EQ(ocs().running(), kRingOfThree);
    EXPECT_EQ(context_->current(), "ring");
}

TEST_F(CommandsTest, CommandsSeveralSwitchesAllOrNone) {
    go_to("ring");
    EXPECT_EQ(context_->pre_commit(options_).message(),
              "no switch has commands queued: command one first");
    ASSERT_TRUE(optical().command(Command::disconnect(1)).is_ok());
    ASSERT_TRUE(called("vlans").command(Command::join_vlan(5, 105)).is_ok());
    ASSERT_TRUE(called("ports").command(Command::enable(7)).is_ok());
    fakes_.at("ports").traits.reject = "commit";
    ASSERT_TRUE(context_->pre_commit(options_).is_ok());
    EXPECT_EQ(context_->commit()->ending, Ending::kRolledBack);
    EXPECT_EQ(ocs().running(), kRingOfThree);
    EXPECT_THAT(fakes_.at("vlans").running(), IsEmpty());
    EXPECT_THAT(called("vlans").commands(), SizeIs(1)) << "what was not done stays";
    fakes_.at("ports").traits.reject = {};
    ASSERT_TRUE(context_->pre_commit(options_).is_ok());
    EXPECT_EQ(context_->commit()->ending, Ending::kSwitched);
    EXPECT_EQ(ocs().running(), (Circuits{{2, 3}, {3, 1}}));
    EXPECT_EQ(fakes_.at("vlans").running(), (Circuits{{5, 105}}));
    EXPECT_EQ(fakes_.at("ports").running(), (Circuits{{7, 1}}));
    EXPECT_THAT(called("vlans").commands(), IsEmpty());
}

TEST_F(CommandsTest, RefusesACommandThatIsNoneForTheSwitch) {
    const auto refusal = [&](const std::string& name, const Command& command) {
        return called(name).command(command).message();
    };
    EXPECT_EQ(refusal("ocs", Command::join_vlan(1, 105)),
              "switch ocs: does not accept port 1 to VLAN 105, as it is optical: it takes "
              "cross_connect and disconnect");
    EXPECT_THAT(refusal("vlans", Command::enable(5)), HasSubstr("it takes join_vlan and disable"));
    EXPECT_THAT(refusal("ports", Command::cross_connect(7, 8)),
                HasSubstr("it takes enable and disable"));
    EXPECT_THAT(refusal("ocs", Command::cross_connect(0, 1)), HasSubstr("ports are 1 to 65535"));
    EXPECT_THAT(refusal("ocs", Command::cross_connect(1, 65536)),
                HasSubstr("ports are 1 to 65535"));
    EXPECT_THAT(refusal("vlans", Command::join_vlan(5, 4095)), HasSubstr("VLANs are 1 to 4094"));
    EXPECT_THAT(refusal("vlans", Command::join_vlan(6, 105)),
                HasSubstr("only ports of devices are looked at and changed"));
    for (const char* name : {"ocs", "vlans", "ports"})
        EXPECT_THAT(called(name).commands(), IsEmpty());
}

TEST_F(CommandsTest, RefusesCommandsThatCannotAllBe) {
    go_to("ring");
    ASSERT_TRUE(optical().command(Command::cross_connect(11, 2)).is_ok());
    EXPECT_EQ(optical().commit(options_).status().message(),
              "switch ocs cannot do all that is queued: two circuits leave by port 2");
    EXPECT_EQ(ocs().running(), kRingOfThree);
    optical().drop_commands();
    EXPECT_EQ(optical().commit(options_).status().message(),
              "no switch has commands queued: command one first");
}

}  // namespace
}  // namespace pccl::cluster
