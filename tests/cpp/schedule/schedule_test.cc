// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/schedule.h"

#include <gtest/gtest.h>

#include "csrc/schedule/generators/generators.h"

namespace pccl::schedule {
namespace {

TEST(ScheduleTextTest, NamesOperandsPortsAndDependencies) {
    const Step step{.action = Action::kRecvReduceCopySend,
                    .src = {Buffer::kInput, 3, 1},
                    .dst = {Buffer::kOutput, 3, 1},
                    .from = {2, 0},
                    .to = {1, 4},
                    .after = {{1, 7}}};
    EXPECT_EQ(to_string(step),
              "recv_reduce_copy_send input[3+1] -> output[3+1] from 2/0 to 1/4 after 1:7");
    EXPECT_EQ(to_string(Step{}), "nop");
}

TEST(ScheduleTextTest, PrintsOneLineAStep) {
    const Schedule schedule =
        generate("one_shot", {.kind = CollectiveKind::kBroadcast, .ranks = 2}).value();
    EXPECT_EQ(to_string(schedule),
              "one_shot: broadcast, 2 ranks, root 0, 1 chunks, 2 slots\n"
              "rank 0 lane 0 step 0: send input[0+1] to 1/0\n"
              "rank 0 lane 0 step 1: copy input[0+1] -> output[0+1]\n"
              "rank 1 lane 0 step 0: recv output[0+1] from 0/0\n");
}

TEST(ScheduleTest, CountsBlocksAsTheCollectiveDefines) {
    const auto sides = [](CollectiveKind kind) {
        return std::pair(blocks(kind, Buffer::kInput, 5), blocks(kind, Buffer::kOutput, 5));
    };
    EXPECT_EQ(sides(CollectiveKind::kAllReduce), std::pair(1, 1));
    EXPECT_EQ(sides(CollectiveKind::kAllGather), std::pair(1, 5));
    EXPECT_EQ(sides(CollectiveKind::kReduceScatter), std::pair(5, 1));
    EXPECT_EQ(sides(CollectiveKind::kBroadcast), std::pair(1, 1));
    EXPECT_EQ(sides(CollectiveKind::kReduce), std::pair(1, 1));
    EXPECT_EQ(sides(CollectiveKind::kGather), std::pair(1, 5));
    EXPECT_EQ(sides(CollectiveKind::kScatter), std::pair(5, 1));
    EXPECT_EQ(sides(CollectiveKind::kAllToAll), std::pair(5, 5));
}

}  // namespace
}  // namespace pccl::schedule
