// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "csrc/schedule/generators/generators.h"
#include "csrc/schedule/verifier/verifier.h"
#include "tests/cpp/schedule/faulty_schedules.h"

namespace pccl::schedule {
namespace {

TEST(VerifierTest, ReturnsWhetherBlocksMayDifferInLength) {
    const auto takes_uneven = [](const Schedule& schedule) {
        return verify(schedule, Placement::kOutOfPlace).value().takes_uneven;
    };
    EXPECT_FALSE(takes_uneven(good_all_reduce())) << "it has one";
    Schedule schedule =
        generate("one_shot", {.kind = CollectiveKind::kAllGather, .ranks = 3}).value();
    EXPECT_TRUE(takes_uneven(schedule));
    // Rank 1 keeps rank 0's block in scratch for a while, where nothing tells whose it is.
    Lane& lane = schedule.programs[1].lanes[0];
    const auto from_0 = std::ranges::find(lane, PeerPort{0}, &Step::from);
    ASSERT_EQ(from_0->dst, Slices(kOut, 0, 1));
    from_0->dst = {kTmp, 0, 1};
    lane.push_back({.action = Action::kCopy, .src = {kTmp, 0, 1}, .dst = {kOut, 0, 1}});
    schedule.programs[1].scratch_chunks = 1;
    EXPECT_EQ(fault_of(schedule), "");
    EXPECT_FALSE(takes_uneven(schedule));
}

}  // namespace
}  // namespace pccl::schedule
