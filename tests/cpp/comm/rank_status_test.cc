// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/diagnosis/rank_status.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "csrc/collective/fingerprint.h"
#include "csrc/transport/control/inquiry.h"
#include "tests/cpp/collective/collective_calls.h"
#include "tests/cpp/comm/waiting_ranks.h"

namespace pccl::comm {
namespace {

TEST(RankStatusTest, ComesBack) {
    const RankStatus rank_status{.broken = Status::timeout("late", 4),
                                 .sequence = 1ULL << 40,
                                 .operation = "broadcast #9",
                                 .awaited = {3, 1},
                                 .gpu_operation = "broadcast #3",
                                 .gpu_awaited = {5},
                                 .recent = {call(kBroadcast, 8, 1), call(kAllToAll, 0, 0)},
                                 .other_group_wait = {.group = {1, 2},
                                                      .name = "B",
                                                      .rank = 2,
                                                      .operation = "all_reduce #1",
                                                      .sequence = 1,
                                                      .awaited = {0}},
                                 .shrinking = {.stage = Shrinking::ShrinkStage::kDoubtful,
                                               .lost = 2,
                                               .call = {1},
                                               .list = {2},
                                               .pact = {3},
                                               .staying = 5,
                                               .left_out = {0, 4}},
                                 .is_whole = false,
                                 .has_one_thread = false};
    const auto again = RankStatus::parse(rank_status.serialise());
    ASSERT_TRUE(again.is_ok()) << again.status().to_string();
    EXPECT_EQ(again->broken.to_string(), rank_status.broken.to_string());
    EXPECT_EQ(again->broken.peer(), 4);
    EXPECT_EQ(again->sequence, rank_status.sequence);
    EXPECT_EQ(again->operation, rank_status.operation);
    EXPECT_EQ(again->awaited, rank_status.awaited);
    EXPECT_EQ(again->gpu_operation, rank_status.gpu_operation);
    EXPECT_EQ(again->gpu_awaited, rank_status.gpu_awaited);
    ASSERT_EQ(again->recent.size(), 2U);
    EXPECT_EQ(describe(again->recent[0]), describe(rank_status.recent[0]));
    EXPECT_EQ(again->other_group_wait.group, rank_status.other_group_wait.group);
    EXPECT_EQ(again->other_group_wait.rank, 2);
    EXPECT_EQ(again->other_group_wait.operation, "all_reduce #1");
    EXPECT_EQ(again->other_group_wait.sequence, 1U);
    EXPECT_EQ(again->other_group_wait.awaited, std::vector<Rank>{0});
    EXPECT_EQ(again->shrinking, rank_status.shrinking);
    EXPECT_FALSE(again->is_whole);
    EXPECT_FALSE(again->has_one_thread);
}

TEST(RankStatusTest, TheLongestFitsIntoAnAnswer) {
    const std::string endless(100'000, 'x');
    const std::vector<Rank> many(1000, 1);
    const RankStatus most{
        .broken = Status::timeout(endless, 1),
        .operation = endless,
        .awaited = many,
        .gpu_operation = endless,
        .gpu_awaited = many,
        .recent = std::vector(1000, call(kBroadcast, 8, 1)),
        .other_group_wait = {.name = endless, .operation = endless, .awaited = many},
        .shrinking = {.stage = Shrinking::ShrinkStage::kDecided, .left_out = many}};
    const std::string bytes = most.serialise();
    EXPECT_LE(bytes.size(), transport::kLongestAnswer);
    EXPECT_TRUE(RankStatus::parse(bytes).is_ok());
}

TEST(RankStatusTest, RefusesWhatIsCutShort) {
    const std::string whole = waiting_for({1, 2}).serialise();
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
        EXPECT_FALSE(RankStatus::parse(std::string_view(whole).substr(0, bytes)).is_ok());
    EXPECT_FALSE(RankStatus::parse(whole + "x").is_ok());
}

}  // namespace
}  // namespace pccl::comm
