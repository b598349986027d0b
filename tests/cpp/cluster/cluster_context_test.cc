// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/cluster_context.h"

#include <gmock/gmock.h>

#include "csrc/cluster/file/cluster_file.h"
#include "csrc/cluster/scatter.h"
#include "tests/cpp/cluster/opened_cluster.h"

namespace pccl::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(ClusterTest, SwitchesFromDarknessAndOn) {
    auto cluster = open();
    EXPECT_EQ(cluster->switch_phase("ring", soon())->ending, Ending::kSwitched);
    EXPECT_EQ(a().running(), kRingOfFour);
    EXPECT_EQ(cluster->switch_phase("pairs", soon())->ending, Ending::kSwitched);
    EXPECT_EQ(a().running(), kPairs);
    EXPECT_EQ(cluster->current(), "pairs");
    EXPECT_EQ(cluster->generation(), 2U);
    EXPECT_EQ(cluster->inspect(std::chrono::seconds(1)).phase, "pairs");
}

TEST_F(ClusterTest, ProvesThePresentPhaseAndTouchesNothing) {
    auto cluster = open();
    ASSERT_TRUE(cluster->switch_phase("ring", soon()).is_ok());
    const auto before = a().operations().size();
    EXPECT_EQ(cluster->switch_phase("ring", soon())->ending, Ending::kSwitched);
    EXPECT_EQ(a().operations().size(), before + 2);
    EXPECT_EQ(a().operations()[before], "get-config");
    EXPECT_EQ(a().operations().back(), "get");
    EXPECT_EQ(cluster->generation(), 1U);
    a().set_running(kPairs);
    EXPECT_EQ(cluster->switch_phase("ring", soon()).status().code(), StatusCode::kMismatch);
}

TEST_F(ClusterTest, AdoptsAKnownPhaseAfterARestartAndRefusesAnUnknownOne) {
    ASSERT_TRUE(open()->switch_phase("ring", soon()).is_ok());
    auto next = open();
    EXPECT_EQ(next->switch_phase("pairs", soon())->ending, Ending::kSwitched);

    a().set_running({{1, 4}});
    auto third = open();
    const Status refused = third->switch_phase("ring", soon()).status();
    EXPECT_EQ(refused.code(), StatusCode::kMismatch);
    EXPECT_THAT(refused.message(), HasSubstr("a: 1->4; b: none"));
    EXPECT_EQ(a().running(), (Circuits{{1, 4}}));
    SwitchOptions options = soon();
    options.adopt = true;
    EXPECT_EQ(third->switch_phase("ring", options)->ending, Ending::kSwitched);
    EXPECT_EQ(a().running(), kRingOfFour);
}

TEST_F(ClusterTest, RefusesToGoOnWhereItIsDegradedUntilItAdopts) {
    auto cluster = open();
    ASSERT_TRUE(cluster->switch_phase("ring", soon()).is_ok());
    a().traits.reject = "commit";
    SwitchOptions options = soon();
    options.drain = [&] {
        a().set_running({{1, 4}});  // somebody else, between our look and our commit
        return Status::ok();
    };
    EXPECT_EQ(cluster->switch_phase("pairs", options)->ending, Ending::kDegraded);
    EXPECT_THAT(cluster->degraded().message(), HasSubstr("switch a: "));
    EXPECT_FALSE(cluster->switch_phase("pairs", soon()).is_ok());
    a().traits = {};
    EXPECT_EQ(cluster->adopt(std::chrono::seconds(1)).code(), StatusCode::kMismatch);
    a().set_running(kRingOfFour);
    EXPECT_TRUE(cluster->adopt(std::chrono::seconds(1)).is_ok());
    EXPECT_EQ(cluster->current(), "ring");
    EXPECT_EQ(cluster->switch_phase("pairs", soon())->ending, Ending::kSwitched);
}

/// Both switches are real ones: they take back what is not confirmed.
Description managed() {
    Description of = description();
    for (SwitchDescription& each : of.switches) each.is_in_process = false;
    return of;
}

TEST_F(ClusterTest, InheritsWhatIsLeftOfAnUnconfirmedCommitOnceItIsTakenBack) {
    auto cluster = open(managed());
    ASSERT_TRUE(cluster->switch_phase("ring", soon()).is_ok());
    const auto dead = a().driver();
    std::vector<SwitchTask> parts = {
        {.driver = dead.get(), .intent = {.from = kRingOfFour, .to = kPairs}, .status = {}}};
    for (const Step step : {Step::kConnect, Step::kLock, Step::kPrepare, Step::kCommit}) {
        static_cast<void>(scatter(step, parts, std::chrono::seconds(1)));
        ASSERT_TRUE(parts[0].status.is_ok()) << parts[0].status.message();
    }
    ASSERT_EQ(a().running(), kPairs);
    SwitchOptions options = soon();
    options.clock = &clock_;
    EXPECT_EQ(open(managed())->inherit(options).value(), "ring");
    EXPECT_EQ(a().running(), kRingOfFour);
}

TEST_F(ClusterTest, InheritsNothingFromTheDark) {
    SwitchOptions options = soon();
    options.clock = &clock_;
    auto cluster = open(managed());
    EXPECT_EQ(cluster->inherit(options).value(), "");
    a().set_running({{1, 4}});
    EXPECT_EQ(cluster->inherit(options).status().code(), StatusCode::kMismatch);
    a().is_gone = true;
    EXPECT_THAT(cluster->inherit(options).status().message(), HasSubstr("switch a: "));
    options.interrupted = [] { return Status::aborted("a signal"); };
    EXPECT_EQ(cluster->inherit(options).status().code(), StatusCode::kAborted);
}

TEST(PlanTest, ListsTheChangesAndThePortsThatGoDark) {
    Description of = description();
    of.switches[0].is_in_process = false;
    of.switches[0].settle = std::chrono::milliseconds(25);
    const auto plan = make_plan(of, "ring", "pairs");
    ASSERT_TRUE(plan.is_ok());
    ASSERT_THAT(plan->switches, SizeIs(1));
    EXPECT_EQ(plan->switches[0].change,
              (Change{.remove = {{2, 3}, {4, 1}}, .add = {{2, 1}, {4, 3}}}));
    EXPECT_EQ(plan->switches[0].xml,
              "<cross-connects xmlns=\"urn:pccl:yang:optical-switch\">"
              "<pair><ingress>2</ingress><egress>1</egress></pair>"
              "<pair><ingress>4</ingress><egress>3</egress></pair></cross-connects>");
    EXPECT_THAT(plan->lost, ElementsAre(RankLink{1, 2}, RankLink{3, 0}));
    EXPECT_THAT(plan->gained, ElementsAre(RankLink{1, 0}, RankLink{3, 2}));
    EXPECT_THAT(plan->dark, IsEmpty());
    EXPECT_NEAR(plan->estimate.count(), 0.031, 1e-9);
}

TEST(PlanTest, RecognizesALinkThatOnlyMoves) {
    const Description of = parse_cluster_file(R"({
        "switches": [{"name": "a"}], "devices": [{"ports": {"a": [1, 2]}}, {"ports": {"a": [3, 4]}}],
        "phases": {"one": {"links": [[0, 1]]}, "two": {"links": [[0, 1], [0, 1]]},
                   "back": {"links": [[1, 0], [0, 1]]}}})",
                                              "c.yaml")
                               .value();
    EXPECT_THAT(make_plan(of, "one", "two")->dark, IsEmpty());
    EXPECT_THAT(make_plan(of, "one", "one")->switches, IsEmpty());
    EXPECT_EQ(make_plan(of, "one", "bakc").status().message(),
              "there is no phase bakc; phases are: back, one, two");
    EXPECT_EQ(make_plan(of, "one", "backs").status().message(),
              "there is no phase backs; did you mean back?");
}

}  // namespace
}  // namespace pccl::cluster
