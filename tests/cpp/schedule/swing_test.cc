// SPDX-License-Identifier: Apache-2.0

// Partners of Swing against its paper, and the reason for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/cpp/schedule/routes.h"

namespace pccl::schedule {
namespace {

using ::testing::ElementsAre;

std::vector<Rank> partners(const Schedule& schedule, Rank rank) {
    std::vector<Rank> found;
    for (const Lane& lane : schedule.programs[static_cast<std::size_t>(rank)].lanes)
        for (const Step& step : lane)
            if (step.to.is_used()) found.push_back(step.to.peer);
    return found;
}

/// Chunks times the hops that they travel on a ring of all ranks, over all messages.
long long hops(const Schedule& schedule) {
    const int ranks = schedule.shape.ranks;
    long long sum = 0;
    for (Rank rank = 0; rank < ranks; ++rank)
        for (const Lane& lane : schedule.programs[static_cast<std::size_t>(rank)].lanes)
            for (const Step& step : lane) {
                if (!step.to.is_used()) continue;
                const int up = (step.to.peer - rank + ranks) % ranks;
                sum += static_cast<long long>(std::min(up, ranks - up)) * count_of(step);
            }
    return sum;
}

/// Distances 1, -1, 3, -5, from even ranks up, from odd ones down; then the same backwards.
TEST(SwingTest, PartnersAreThePapers) {
    const Schedule schedule = all_reduce_of("swing", 16);
    EXPECT_THAT(partners(schedule, 0), ElementsAre(1, 15, 3, 11, 11, 3, 15, 1));
    EXPECT_THAT(partners(schedule, 1), ElementsAre(0, 2, 14, 6, 6, 14, 2, 0));
    EXPECT_THAT(partners(schedule, 14), ElementsAre(15, 13, 1, 9, 9, 1, 13, 15));
}

TEST(SwingTest, TheSameBytesTravelLessFarThanByHalving) {
    for (const int ranks : {8, 16, 32, 64, 128}) {
        const long long swing = hops(all_reduce_of("swing", ranks));
        EXPECT_LT(swing, hops(all_reduce_of("recursive_halving", ranks))) << ranks;
        long long farthest_first = 0;  // where half of the vector goes over half of all ranks
        for (long long distance = 1; distance < ranks; distance *= 2)
            farthest_first += 2 * ranks * distance * distance;
        EXPECT_LT(2 * swing, farthest_first) << ranks;
    }
}

}  // namespace
}  // namespace pccl::schedule
