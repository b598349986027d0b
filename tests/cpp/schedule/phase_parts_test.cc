// SPDX-License-Identifier: Apache-2.0

// What a schedule that switches phases does in each of them.
#include "csrc/schedule/phase_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pccl::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Step kSwitch{.action = Action::kSwitchPhase};

Step copy_after(std::vector<Dependency> after) {
    return {.action = Action::kCopy,
            .src = {Buffer::kInput, 0, 1},
            .dst = {Buffer::kOutput, 0, 1},
            .after = std::move(after)};
}

Schedule of_lanes(std::vector<Lane> lanes, std::vector<std::string> phases) {
    return {.name = "parts",
            .shape = {.kind = CollectiveKind::kAllReduce, .ranks = 1},
            .programs = {{.lanes = std::move(lanes), .scratch_chunks = 3}},
            .phases = std::move(phases)};
}

TEST(PhasePartsTest, OnePartWithoutSwitches) {
    const Schedule whole = of_lanes({{copy_after({})}}, {});
    const auto parts = parts_of(whole);
    ASSERT_EQ(parts.size(), 1U);
    EXPECT_EQ(parts[0].phase, "");
    EXPECT_EQ(parts[0].programs, whole.programs);
}

TEST(PhasePartsTest, CutsLanesAtTheirSwitches) {
    const auto parts = parts_of(of_lanes(
        {{kSwitch, copy_after({}), copy_after({}), kSwitch}, {copy_after({}), kSwitch, kSwitch}},
        {"ring", "pairs"}));
    ASSERT_EQ(parts.size(), 3U);
    const auto lengths = [&](std::size_t part) {
        std::vector<std::size_t> found;
        for (const Lane& lane : parts[part].programs[0].lanes) found.push_back(lane.size());
        return found;
    };
    EXPECT_THAT(lengths(0), ElementsAre(0, 1));
    EXPECT_THAT(lengths(1), ElementsAre(2, 0));
    EXPECT_THAT(lengths(2), ElementsAre(0, 0));
    EXPECT_EQ(parts[1].phase, "ring");
    EXPECT_EQ(parts[1].programs[0].scratch_chunks, 3);
    EXPECT_FALSE(parts[1].is_empty());
    EXPECT_TRUE(parts[2].is_empty());
}

TEST(PhasePartsTest, KeepsWhatStepsOfThePartWaitFor) {
    const auto parts =
        parts_of(of_lanes({{copy_after({}), kSwitch, copy_after({}), copy_after({})},
                           {copy_after({}), kSwitch, copy_after({{0, 0}, {0, 1}, {0, 3}})}},
                          {"ring"}));
    EXPECT_THAT(parts[1].programs[0].lanes[1][0].after, ElementsAre(Dependency{0, 1}));
    EXPECT_THAT(parts[0].programs[0].lanes[1][0].after, IsEmpty());
}

}  // namespace
}  // namespace pccl::schedule
