// SPDX-License-Identifier: Apache-2.0

// Phases and transforms that a program registers.
#include "csrc/cluster/phase_book.h"

#include <gmock/gmock.h>

#include <pccl/phases.h>
#include "tests/cpp/cluster/three_devices.h"

namespace pccl::cluster {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

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

TEST_F(CommandsTest, RecognizesTheCircuitsOfATransformAfterARestart) {
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

}  // namespace
}  // namespace pccl::cluster
