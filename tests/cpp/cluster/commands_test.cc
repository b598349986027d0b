// SPDX-License-Identifier: Apache-2.0

// What a C++ program does with a cluster beside its file: phases and transforms of its own, the two
// steps of a switch, and commands to single switches.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>

#include <pccl/phases.h>
#include "csrc/base/text/text.h"
#include "csrc/cluster/cluster_context.h"
#include "csrc/cluster/file/cluster_file.h"
#include "tests/cpp/cluster/fake_switch.h"

namespace pccl::cluster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::string_view kThreeDevices = R"({
    "switches": [{"name": "ocs"}, {"name": "spare"},
                 {"name": "vlans", "kind": "electrical"},
                 {"name": "ports", "dialect": "ietf-interfaces"}],
    "devices": [{"ports": {"ocs": [1, 11], "spare": 1, "vlans": 5, "ports": 7}},
                {"ports": {"ocs": [2, 12], "spare": 2}},
                {"ports": {"ocs": [3, 13], "spare": 3}}],
    "phases": {"ring": {"links": "ring"}, "star": {"links": [[0, 1], [0, 2]]}}})";

const Circuits kRingOfThree = {{1, 2}, {2, 3}, {3, 1}};
const Circuits kStar = {{1, 2}, {11, 3}};

class CommandsTest : public ::testing::Test {
   protected:
    CommandsTest() { open(); }

    void open() {
        const MakeDriver make =
            [this](const SwitchDescription& each) -> Result<std::unique_ptr<Driver>> {
            return fakes_
                .try_emplace(each.name, FakeTraits{.dialect = each.dialect}, Circuits{}, clock_)
                .first->second.driver();
        };
        context_.reset();
        context_ =
            ClusterContext::open(parse_cluster_file(kThreeDevices, "c.yaml").value(), make).value();
    }
    FakeSwitch& ocs() { return fakes_.at("ocs"); }
    FakeSwitch& spare() { return fakes_.at("spare"); }
    OpticalSwitch& optical() { return **context_->optical_switch("ocs"); }
    Switch& called(const std::string& name) { return **context_->switch_called(name); }
    std::string shown() { return context_->inspect(std::chrono::seconds(20)).phase; }
    void go_to(const std::string& phase) {
        const auto report = context_->switch_phase(phase, options_);
        ASSERT_TRUE(report.is_ok()) << report.status().to_string();
        ASSERT_EQ(report->ending, Ending::kSwitched) << report->reason.to_string();
    }
    void expect_free() {
        for (auto& [name, fake] : fakes_) EXPECT_FALSE(fake.is_locked()) << name;
    }

    SleepyClock clock_;
    std::map<std::string, FakeSwitch> fakes_;
    std::unique_ptr<ClusterContext> context_;
    SwitchOptions options_{.step_timeout = std::chrono::seconds(20), .clock = &clock_};
};

TEST_F(CommandsTest, SwitchesToAPhaseThatAProgramRegisters) {
    ASSERT_TRUE(
        context_->register_phase({.name = "pair", .links = both_ways({RankLink{0, 1}})}).is_ok());
    go_to("pair");
    EXPECT_EQ(ocs().running(), (Circuits{{1, 2}, {2, 1}}));
    EXPECT_EQ(shown(), "pair");
    EXPECT_EQ(context_->plan("ring", "pair")->gained, (std::vector<RankLink>{{1, 0}}));
}

TEST_F(CommandsTest, RefusesWhatCannotBeAPhase) {
    const auto refusal = [&](Phase phase) { return context_->register_phase(phase).message(); };
    EXPECT_EQ(refusal({.name = "", .links = {}}),
              "a phase has a name: 1 to 64 of A-Z a-z 0-9 . _ -");
    EXPECT_EQ(refusal({.name = "ring", .links = {}}), "there is a phase ring already");
    EXPECT_EQ(refusal({.name = "far", .links = {{0, 3}}}),
              "phase far: link 0 -> 3 must join two different ranks from 0 to 2");
    EXPECT_EQ(refusal({.name = "self", .links = {{1, 1}}}),
              "phase self: link 1 -> 1 must join two different ranks from 0 to 2");
    EXPECT_THAT(refusal({.name = "much", .links = {{0, 1}, {0, 1}, {0, 1}, {0, 1}}}),
                HasSubstr("no switch has a free port of both ranks for the link 0 -> 1"));
    EXPECT_THAT(context_->description().phases, SizeIs(2));
}

/// Keeps the circuit of 0 -> 1, and has the other link leave by the device's second port and come
/// in at the other's second.
Result<CircuitsBySwitch> to_star(const CircuitsBySwitch& from) {
    CircuitsBySwitch to = from;
    to["ocs"] = {{11, 13}, {1, 2}};
    return to;
}

TEST_F(CommandsTest, GoesOverTheCircuitsThatATransformChooses) {
    ASSERT_TRUE(context_->register_transform("ring", "star", to_star).is_ok());
    const Circuits chosen = {{1, 2}, {11, 13}};
    go_to("ring");
    EXPECT_EQ(context_->plan("ring", "star")->switches.at(0).change,
              (Change{.remove = {{2, 3}, {3, 1}}, .add = {{11, 13}}}));
    go_to("star");
    EXPECT_EQ(ocs().running(), chosen);
    EXPECT_EQ(shown(), "star");
    // It is there already, over whichever ports.
    const auto generation = context_->generation();
    go_to("star");
    EXPECT_EQ(ocs().running(), chosen);
    EXPECT_EQ(context_->generation(), generation);
    go_to("ring");
    EXPECT_EQ(ocs().running(), kRingOfThree);
}

TEST_F(CommandsTest, KnowsWhatATransformHasMadeAfterARestart) {
    ASSERT_TRUE(context_->register_transform("ring", "star", to_star).is_ok());
    go_to("ring");
    go_to("star");
    open();
    EXPECT_EQ(shown(), "") << "nobody has told this one of the transform";
    ASSERT_TRUE(context_->register_transform("ring", "star", to_star).is_ok());
    EXPECT_TRUE(context_->adopt(std::chrono::seconds(20)).is_ok());
    EXPECT_EQ(context_->current(), "star");
    go_to("ring");
    EXPECT_EQ(ocs().running(), kRingOfThree);
}

TEST_F(CommandsTest, TakesTheUsualCircuitsFromAnyOtherPhase) {
    ASSERT_TRUE(context_->register_transform("ring", "star", to_star).is_ok());
    go_to("star");
    EXPECT_EQ(ocs().running(), kStar);
}

TEST_F(CommandsTest, RefusesATransformThatLeadsElsewhere) {
    const auto refusal = [&](const std::string& to, Transform transform) {
        return context_->register_transform("ring", to, std::move(transform)).message();
    };
    const auto giving = [](Circuits circuits) {
        return [circuits](const CircuitsBySwitch& from) -> Result<CircuitsBySwitch> {
            CircuitsBySwitch made = from;
            made["ocs"] = circuits;
            return made;
        };
    };
    EXPECT_THAT(refusal("stars", to_star), HasSubstr("did you mean star?"));
    EXPECT_EQ(refusal("ring", to_star), "a transform from ring to ring leads nowhere");
    EXPECT_EQ(refusal("star", nullptr), "a transform from ring to star is no function");
    EXPECT_EQ(refusal("star", giving({{1, 2}, {2, 3}})),
              "the transform to star: lacks the links 0 -> 2 of phase star, and has 1 -> 2 "
              "besides");
    EXPECT_EQ(refusal("star", giving({{1, 2}, {1, 3}})),
              "the transform to star: switch ocs: two circuits begin at port 1");
    EXPECT_EQ(refusal("star", giving({{1, 2}, {1, 99}})),
              "the transform to star: switch ocs: no device is at port 99");
    EXPECT_EQ(refusal("star",
                      [](const CircuitsBySwitch&) -> Result<CircuitsBySwitch> {
                          return CircuitsBySwitch{{"ocs", {}}};
                      }),
              "the transform to star: switch spare is missing");
    EXPECT_EQ(refusal("star",
                      [](CircuitsBySwitch from) -> Result<CircuitsBySwitch> {
                          from["vlans"] = {{5, 105}};
                          return from;
                      }),
              "the transform to star: switch vlans is electrical, and needs none for its links");
    EXPECT_EQ(refusal("star",
                      [](const CircuitsBySwitch&) -> Result<CircuitsBySwitch> {
                          return Status::unavailable("not today");
                      }),
              "the transform to star: not today");
    ASSERT_EQ(refusal("star", to_star), "");
    EXPECT_EQ(refusal("star", to_star), "there is a transform from ring to star already");
}

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

TEST_F(CommandsTest, KnowsThePhaseThatCommandsLeadTo) {
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
              "switch ocs: cannot be told to port 1 to VLAN 105, as it is optical: it takes "
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
    optical().discard();
    EXPECT_EQ(optical().commit(options_).status().message(),
              "no switch has commands queued: command one first");
}

TEST_F(CommandsTest, FindsSwitchesByTheirNames) {
    EXPECT_EQ(context_->switch_called("spares").status().message(),
              "there is no switch spares; did you mean spare?");
    EXPECT_EQ(context_->switch_called("x").status().message(),
              "there is no switch x; switches are: ocs, spare, vlans, ports");
    EXPECT_EQ(context_->optical_switch("vlans").status().message(), "switch vlans is electrical");
    EXPECT_EQ(optical().description().kind, SwitchKind::kOptical);
}

TEST_F(CommandsTest, TellsWhereNoLightComesIn) {
    go_to("ring");
    EXPECT_THAT(*optical().dark(std::chrono::seconds(20)), IsEmpty());
    ocs().dark = {2};
    EXPECT_THAT(*optical().dark(std::chrono::seconds(20)), ElementsAre(2));
    ocs().is_gone = true;
    ocs().traits.drop = "get-config";
    EXPECT_THAT(optical().dark(std::chrono::seconds(20)).status().message(),
                HasSubstr("switch ocs: "));
}

TEST(ClusterContextFileTest, LoadsAFileOrSaysWhatIsWrongWithIt) {
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
