// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/cluster_context.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "csrc/base/text/text.h"
#include "csrc/cluster/file/cluster_file.h"
#include "csrc/cluster/scatter.h"
#include "tests/cpp/cluster/fake_switch.h"

namespace pccl::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::string_view kFourDevices = R"({
    "switches": [{"name": "a"}, {"name": "b"}],
    "devices": [{"ports": {"a": 1, "b": 1}}, {"ports": {"a": 2, "b": 2}},
                {"ports": {"a": 3, "b": 3}}, {"ports": {"a": 4, "b": 4}}],
    "phases": {"ring": {"links": "ring"},
               "pairs": {"links": [[0, 1], [2, 3]], "duplex": true},
               "star": {"links": [[0, 1], [0, 2]]}}})";

const Circuits kRingOfFour = {{1, 2}, {2, 3}, {3, 4}, {4, 1}};
const Circuits kPairs = {{1, 2}, {2, 1}, {3, 4}, {4, 3}};

Description description(std::string_view file = kFourDevices) {
    return parse_cluster_file(file, "c.yaml").value();
}

class ClusterTest : public ::testing::Test {
   protected:
    std::unique_ptr<ClusterContext> open(Description of = description()) {
        const MakeDriver make =
            [this](const SwitchDescription& each) -> Result<std::unique_ptr<Driver>> {
            auto& fake =
                fakes_.try_emplace(each.name, FakeTraits{}, Circuits{}, clock_).first->second;
            return fake.driver();
        };
        return ClusterContext::open(std::move(of), make).value();
    }
    SwitchOptions soon() { return {.step_timeout = std::chrono::seconds(20)}; }
    FakeSwitch& a() { return fakes_.at("a"); }

    SleepyClock clock_;
    std::map<std::string, FakeSwitch> fakes_;
};

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

constexpr std::string_view kMixed = R"({
    "switches": [{"name": "a"}, {"name": "e", "kind": "electrical"}],
    "devices": [{"ports": {"a": 1, "e": 11}}, {"ports": {"a": 2, "e": 12}},
                {"ports": {"a": 3, "e": 13}}, {"ports": {"a": 4, "e": 14}}],
    "phases": {"ring": {"links": "ring"},
               "rings": {"links": [[0, 1], [1, 2], [2, 3], [3, 0], [1, 0], [0, 3]]},
               "pairs": {"links": [[0, 1], [2, 3], [0, 2]], "duplex": true}}})";

class MixedTest : public ClusterTest {
   protected:
    MixedTest() {
        fakes_.try_emplace("e", FakeTraits{.dialect = "pccl-vlan"}, Circuits{}, clock_);
        cluster_ = open(description(kMixed));
    }
    FakeSwitch& e() { return fakes_.at("e"); }

    std::unique_ptr<ClusterContext> cluster_;
};

TEST_F(MixedTest, OneTransactionSpansAnOpticalAndAnElectricalSwitch) {
    EXPECT_EQ(cluster_->switch_phase("ring", soon())->ending, Ending::kSwitched);
    EXPECT_EQ(a().running(), kRingOfFour);
    EXPECT_THAT(e().running(), IsEmpty());
    // No transmitter is left for a second link of ranks 0 and 1: packets take these.
    EXPECT_EQ(cluster_->switch_phase("rings", soon())->ending, Ending::kSwitched);
    EXPECT_EQ(a().running(), kRingOfFour);
    EXPECT_EQ(e().running(), (Circuits{{11, 111}, {12, 111}, {14, 111}}));
    EXPECT_EQ(cluster_->switch_phase("pairs", soon())->ending, Ending::kSwitched);
    EXPECT_EQ(a().running(), kPairs);
    EXPECT_EQ(e().running(), (Circuits{{11, 111}, {13, 111}}));
    EXPECT_EQ(cluster_->inspect(std::chrono::seconds(1)).phase, "pairs");
}

TEST_F(MixedTest, BothChangeOrNone) {
    ASSERT_TRUE(cluster_->switch_phase("rings", soon()).is_ok());
    const Circuits before = e().running();
    e().traits.reject = "commit";
    EXPECT_EQ(cluster_->switch_phase("pairs", soon())->ending, Ending::kRolledBack);
    EXPECT_EQ(a().running(), kRingOfFour);
    EXPECT_EQ(e().running(), before);
    e().traits.reject = {};
    a().traits.reject = "edit-config";
    EXPECT_EQ(cluster_->switch_phase("pairs", soon())->ending, Ending::kRefused);
    EXPECT_EQ(e().running(), before);
}

TEST_F(MixedTest, PlansWhatLosesItsVlan) {
    const auto plan = make_plan(description(kMixed), "rings", "pairs");
    ASSERT_TRUE(plan.is_ok()) << plan.status().to_string();
    ASSERT_THAT(plan->switches, SizeIs(2));
    EXPECT_EQ(plan->switches[1].change,
              (Change{.remove = {{12, 111}, {14, 111}}, .add = {{13, 111}}}));
}

TEST_F(ClusterTest, ShowsWhereLightHasGoneSince) {
    auto cluster = open();
    ASSERT_TRUE(cluster->switch_phase("ring", soon()).is_ok());
    EXPECT_THAT(cluster->inspect(std::chrono::seconds(1)).switches[0].dark, IsEmpty());
    a().dark = {3};
    const Inspection inspection = cluster->inspect(std::chrono::seconds(1));
    EXPECT_EQ(inspection.phase, "ring");
    EXPECT_THAT(inspection.switches[0].dark, ElementsAre(3));
}

TEST_F(ClusterTest, UsesASecondSwitchWhereTheFirstHasNoPortLeft) {
    auto cluster = open();
    EXPECT_EQ(cluster->switch_phase("star", soon())->ending, Ending::kSwitched);
    EXPECT_EQ(a().running(), (Circuits{{1, 2}}));
    EXPECT_EQ(fakes_.at("b").running(), (Circuits{{1, 3}}));
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

TEST_F(ClusterTest, ReadsAnewWhereASessionHasEnded) {
    auto cluster = open();
    ASSERT_TRUE(cluster->switch_phase("ring", soon()).is_ok());
    a().traits = {.drop = "get-config", .faults = 1};
    EXPECT_EQ(cluster->inspect(std::chrono::seconds(1)).phase, "ring");
    a().is_gone = true;
    const Inspection inspection = cluster->inspect(std::chrono::seconds(1));
    EXPECT_EQ(inspection.phase, "");
    EXPECT_FALSE(inspection.switches[0].status.is_ok());
    EXPECT_TRUE(inspection.switches[1].status.is_ok());
}

TEST_F(ClusterTest, SaysWhichPhaseAnotherControllerHasSwitchedTo) {
    auto cluster = open();
    auto other = open();
    ASSERT_TRUE(cluster->switch_phase("ring", soon()).is_ok());
    ASSERT_TRUE(other->switch_phase("pairs", soon()).is_ok());
    const Status refused = cluster->switch_phase("ring", soon()).status();
    EXPECT_EQ(refused.code(), StatusCode::kMismatch);
    EXPECT_EQ(refused.message(),
              "the switches show phase pairs: somebody else has changed it since, or a switch has "
              "restarted; adopt() takes that for the current phase, and switching with adopt "
              "overwrites it");
}

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

TEST_F(ClusterTest, HearsAnInterruptionWhileASwitchSaysNothing) {
    auto cluster = open();
    a().traits.hang = "get-config";
    SwitchOptions options{.step_timeout = std::chrono::hours(1)};
    options.interrupted = [] { return Status::aborted("a signal"); };
    EXPECT_THAT(
        cluster->inspect(options.step_timeout, options.interrupted).switches[0].status.message(),
        HasSubstr("no answer to read before the interruption"));
    options.adopt = true;
    EXPECT_FALSE(cluster->switch_phase("ring", options).is_ok());
}

TEST_F(ClusterTest, KeepsAnAuditLogThatOthersCannotWrite) {
    const auto path = std::filesystem::path(::testing::TempDir()) / "pccl_audit_test.jsonl";
    std::filesystem::remove(path);
    Description of = description();
    of.audit_file = path;
    of.switches[0].management.key_file = "/secret/key";
    auto cluster = open(of);
    ASSERT_TRUE(cluster->switch_phase("ring", soon()).is_ok());
    std::ifstream file(path);
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(file, line);) {
        EXPECT_THAT(line, Not(HasSubstr("secret")));
        lines.push_back(nlohmann::json::parse(line));
    }
    ASSERT_THAT(lines, SizeIs(2));
    EXPECT_EQ(lines[0]["event"], "begin");
    EXPECT_EQ(lines[0]["switches"][0]["to"][0], (std::vector<int>{1, 2}));
    EXPECT_EQ(lines[1]["outcome"], "switched");
    EXPECT_EQ(lines[1]["switches"][0]["requests"][0]["operation"], "lock");
    EXPECT_THAT(cluster->audit(), SizeIs(2));
    struct stat facts {};
    ASSERT_EQ(::stat(path.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777U, 0600U);
    ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
    EXPECT_THAT(ClusterContext::open(of).status().message(),
                HasSubstr("by other users (mode 0666)"));
    std::filesystem::remove(path);
}

TEST(PlanTest, SaysWhatChangesAndWhatGoesDark) {
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

TEST(PlanTest, KnowsALinkThatOnlyMoves) {
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
