// SPDX-License-Identifier: Apache-2.0

// Candidates, locks and the startup configuration of a device.
#include "csrc/cluster/drivers/netconf_driver.h"

#include <gmock/gmock.h>

#include "tests/cpp/cluster/fake_switch.h"
#include "tests/cpp/cluster/opened_cluster.h"

namespace pccl::cluster {
namespace {

using ::testing::HasSubstr;

TEST_F(ClusterTest, RefusesACandidateThatSomebodyHasEditedAndLeavesItAlone) {
    auto cluster = open();
    ASSERT_TRUE(cluster->switch_phase("ring", soon()).is_ok());
    Circuits edited = kRingOfFour;
    edited.push_back({100, 101});
    a().leave_in_candidate(edited);
    for (int attempt = 0; attempt < 2; ++attempt) {
        const auto refused = cluster->switch_phase("pairs", soon());
        ASSERT_TRUE(refused.is_ok());
        EXPECT_EQ(refused->ending, Ending::kRefused);
        EXPECT_EQ(refused->reason.code(), StatusCode::kUnavailable);
        EXPECT_EQ(refused->reason.message(),
                  "switch a: resource-denied; its candidate holds edits that nobody has committed: "
                  "adds pair (ingress 100, egress 101); discard_candidate=True "
                  "(--discard-candidate) throws them away");
        EXPECT_TRUE(a().is_edited());
    }
    a().traits.editor = 17;
    EXPECT_THAT(cluster->switch_phase("pairs", soon())->reason.message(),
                HasSubstr("(held by session 17); its candidate holds edits"));
    SwitchOptions options = soon();
    options.discard_candidate = true;
    const auto report = cluster->switch_phase("pairs", options);
    EXPECT_EQ(report->ending, Ending::kSwitched) << report->reason.message();
    EXPECT_EQ(report->members[0].discarded, "adds pair (ingress 100, egress 101)");
    EXPECT_EQ(a().running(), kPairs);
}

TEST_F(ClusterTest, ClearsWhatAControllerThatDiedHadPrepared) {
    auto cluster = open();
    ASSERT_TRUE(cluster->switch_phase("ring", soon()).is_ok());
    a().leave_in_candidate(kPairs);
    const auto report = cluster->switch_phase("pairs", soon());
    EXPECT_EQ(report->ending, Ending::kSwitched) << report->reason.message();
    EXPECT_THAT(report->members[0].discarded, HasSubstr("adds pair (ingress 2, egress 1)"));
    // With an edit of somebody else beside it, it is not a controller's.
    a().leave_in_candidate(kRingOfFour, "<system xmlns=\"urn:s\"><name>x</name></system>");
    EXPECT_THAT(cluster->switch_phase("ring", soon())->reason.message(),
                HasSubstr("adds system (name), "));
    // One that is alive holds the lock, and what it prepares is its own.
    a().leave_in_candidate(kRingOfFour);
    a().lock_for(7);
    EXPECT_THAT(cluster->switch_phase("ring", soon())->reason.message(),
                HasSubstr("held by session 7"));
    EXPECT_TRUE(a().is_edited());
}

TEST_F(ClusterTest, ThrowsAwayNothingWhereSomebodyElseHoldsTheLock) {
    auto cluster = open();
    ASSERT_TRUE(cluster->switch_phase("ring", soon()).is_ok());
    a().leave_in_candidate({{100, 101}});
    a().lock_for(7);
    SwitchOptions options = soon();
    options.discard_candidate = true;
    EXPECT_EQ(cluster->switch_phase("pairs", options)->ending, Ending::kRefused);
    EXPECT_TRUE(a().is_edited());
}

TEST_F(ClusterTest, CopiesToStartupWhereTheFileWantsIt) {
    for (const bool is_wanted : {false, true}) {
        fakes_.clear();
        fakes_.try_emplace("a", FakeTraits{.has_startup = true}, Circuits{}, clock_);
        Description of = description();
        for (SwitchDescription& each : of.switches) each.copies_to_startup = is_wanted;
        auto cluster = open(of);
        const auto report = cluster->switch_phase("star", soon());
        EXPECT_EQ(report->ending, Ending::kSwitched);
        EXPECT_EQ(report->members[0].startup, is_wanted ? "copied" : "not copied");
        EXPECT_EQ(report->members[1].startup, "");  // it starts with what it runs
        EXPECT_EQ(a().startup(), is_wanted ? (Circuits{{1, 2}}) : Circuits{});
    }
}

TEST_F(ClusterTest, IsSwitchedThoughCopyingToStartupFails) {
    fakes_.try_emplace("a", FakeTraits{.reject = "copy-config", .has_startup = true}, Circuits{},
                       clock_);
    Description of = description();
    of.switches[0].copies_to_startup = true;
    auto cluster = open(of);
    const auto report = cluster->switch_phase("ring", soon());
    EXPECT_EQ(report->ending, Ending::kSwitched);
    EXPECT_EQ(report->members[0].startup, "operation-failed");
    EXPECT_TRUE(report->members[0].status.is_ok());
    EXPECT_FALSE(a().is_locked());
}

}  // namespace
}  // namespace pccl::cluster
