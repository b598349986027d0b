// SPDX-License-Identifier: Apache-2.0

// The two steps of a switch of phases by a C++ program.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>

#include <pccl/phases.h>
#include "csrc/cluster/cluster_context.h"
#include "tests/cpp/cluster/three_devices.h"

namespace pccl::cluster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(CommandsTest, LightsNothingBeforeTheSecondStep) {
    go_to("ring");
    ASSERT_TRUE(context_->pre_commit("star", options_).is_ok());
    EXPECT_EQ(ocs().running(), kRingOfThree);
    EXPECT_TRUE(ocs().is_locked());
    EXPECT_THAT(ocs().operations(), Contains("edit-config"));
    EXPECT_EQ(shown(), "ring");
    EXPECT_EQ(context_->current(), "ring");
    const auto report = context_->commit();
    ASSERT_TRUE(report.is_ok()) << report.status().to_string();
    EXPECT_EQ(report->ending, Ending::kSwitched);
    EXPECT_EQ(ocs().running(), kStar);
    EXPECT_EQ(context_->current(), "star");
    expect_free();
}

TEST_F(CommandsTest, LeavesNothingBehindWhereItIsNotToBe) {
    go_to("ring");
    ASSERT_TRUE(context_->pre_commit("star", options_).is_ok());
    EXPECT_TRUE(context_->discard().is_ok());
    expect_free();
    EXPECT_EQ(ocs().running(), kRingOfThree);
    EXPECT_EQ(context_->current(), "ring");
    EXPECT_THAT(context_->audit().back(), HasSubstr("it was discarded"));
    // Nor where the program ends between the steps.
    ASSERT_TRUE(context_->pre_commit("star", options_).is_ok());
    context_.reset();
    expect_free();
    EXPECT_EQ(ocs().running(), kRingOfThree);
}

TEST_F(CommandsTest, NamesTheSwitchThatRefusesTheFirstStep) {
    go_to("ring");
    ocs().traits.reject = "edit-config";
    const Status refused = context_->pre_commit("star", options_);
    EXPECT_THAT(refused.message(), HasSubstr("switch ocs: "));
    expect_free();
    EXPECT_EQ(ocs().running(), kRingOfThree);
    EXPECT_EQ(context_->current(), "ring");
    EXPECT_EQ(context_->commit().status().message(),
              "nothing is prepared to be committed: pre_commit first");
    ocs().traits = {};
    go_to("star");
}

TEST_F(CommandsTest, LeavesAllAsBeforeWhereTheSecondStepIsRefused) {
    ASSERT_TRUE(context_
                    ->register_transform("ring", "star",
                                         [](CircuitsBySwitch from) {
                                             std::swap(from["ocs"], from["spare"]);
                                             from["spare"] = {{1, 2}};
                                             from["ocs"] = {{1, 3}};
                                             return Result<CircuitsBySwitch>(from);
                                         })
                    .is_ok());
    go_to("ring");
    ASSERT_TRUE(context_->pre_commit("star", options_).is_ok());
    EXPECT_TRUE(spare().is_locked());
    spare().traits.reject = "commit";
    const auto report = context_->commit();
    ASSERT_TRUE(report.is_ok()) << report.status().to_string();
    EXPECT_EQ(report->ending, Ending::kRolledBack);
    EXPECT_THAT(report->reason.message(), HasSubstr("switch spare: "));
    EXPECT_EQ(ocs().running(), kRingOfThree);
    EXPECT_THAT(spare().running(), IsEmpty());
    EXPECT_EQ(context_->current(), "ring");
    EXPECT_TRUE(context_->degraded().is_ok());
    expect_free();
    spare().traits.reject = {};
    go_to("star");
    EXPECT_EQ(spare().running(), (Circuits{{1, 2}}));
}

TEST_F(CommandsTest, DoesOneThingAtATime) {
    EXPECT_EQ(context_->commit().status().message(),
              "nothing is prepared to be committed: pre_commit first");
    EXPECT_EQ(context_->discard().message(), "nothing is prepared that could be discarded");
    ASSERT_TRUE(context_->pre_commit("star", options_).is_ok());
    const std::string first = "a change to star is prepared: commit or discard it first";
    EXPECT_EQ(context_->pre_commit("ring", options_).message(), first);
    EXPECT_EQ(context_->switch_phase("ring", options_).status().message(), first);
    EXPECT_EQ(context_->adopt(std::chrono::seconds(1)).message(), first);
    EXPECT_EQ(context_->inherit(options_).status().message(), first);
    ASSERT_TRUE(optical().command(Command::disconnect(1)).is_ok());
    EXPECT_EQ(optical().commit(options_).status().message(), first);
    EXPECT_EQ(context_->commit()->ending, Ending::kSwitched);
    EXPECT_EQ(context_->switch_phase("ring", options_).status().message(),
              "switch ocs has commands queued: commit or discard them first");
}

TEST_F(CommandsTest, BeginsNothingMoreAfterItsDeadline) {
    go_to("ring");
    std::atomic<bool> is_over = false;
    options_.deadline = Deadline::never().unless(is_over);
    options_.drain = [&] {
        is_over = true;
        return Status::ok();
    };
    const auto report = context_->switch_phase("star", options_);
    ASSERT_TRUE(report.is_ok()) << report.status().to_string();
    EXPECT_EQ(report->ending, Ending::kRefused);
    EXPECT_EQ(report->reason.code(), StatusCode::kTimeout);
    EXPECT_EQ(ocs().running(), kRingOfThree);
    expect_free();
}

TEST_F(CommandsTest, TakesACommitBackThatIsNotConfirmedByTheDeadline) {
    go_to("ring");
    const auto commits = [this] { return std::ranges::count(ocs().operations(), "commit"); };
    std::atomic<bool> is_over = false;
    options_.deadline = Deadline::never().unless(is_over);
    options_.interrupted = [&, before = commits()] {
        is_over = commits() > before;
        return Status::ok();
    };
    const auto report = context_->switch_phase("star", options_);
    ASSERT_TRUE(report.is_ok()) << report.status().to_string();
    EXPECT_EQ(report->ending, Ending::kRolledBack);
    EXPECT_EQ(report->reason.code(), StatusCode::kTimeout);
    EXPECT_EQ(ocs().running(), kRingOfThree);
    expect_free();
}

TEST(ClusterContextFileTest, LoadsAFileOrNamesItsFault) {
    const auto path = std::filesystem::path(::testing::TempDir()) / "pccl_context_test.json";
    std::ofstream(path) << R"({"devices": [{}, {}], "phases": {"ring": {"links": "ring"}}})";
    const auto loaded = ClusterContext::load(path);
    ASSERT_TRUE(loaded.is_ok()) << loaded.status().to_string();
    EXPECT_EQ((*loaded)->switch_phase("ring")->ending, Ending::kSwitched);
    EXPECT_EQ((*loaded)->current(), "ring");
    std::ofstream(path) << R"({"devces": []})";
    EXPECT_THAT(ClusterContext::load(path).status().message(),
                AllOf(HasSubstr("pccl_context_test.json: "), HasSubstr("devices")));
    std::filesystem::remove(path);
    EXPECT_THAT(ClusterContext::load(path).status().message(), HasSubstr("pccl_context_test.json"));
}

}  // namespace
}  // namespace pccl::cluster
