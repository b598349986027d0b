// SPDX-License-Identifier: Apache-2.0

// Partners of recursive halving.
#include <gtest/gtest.h>

#include "tests/cpp/schedule/routes.h"

namespace pccl::schedule {
namespace {

/// Of two hosts with half of the ranks each, halving's partners are near but for the last ones.
TEST(RecursiveHalvingTest, OnlySmallPartsLeaveAHost) {
    for (const int ranks : {8, 16, 64}) {
        const Schedule schedule = all_reduce_of("recursive_halving", ranks);
        const auto host_of = [&](Rank rank) { return rank / (ranks / 2); };
        int crossed = 0;
        for (Rank rank = 0; rank < ranks; ++rank)
            for (const Lane& lane : schedule.programs[static_cast<std::size_t>(rank)].lanes)
                for (const Step& step : lane)
                    if (step.to.is_used() && host_of(step.to.peer) != host_of(rank))
                        crossed += count_of(step);
        ASSERT_EQ(schedule.shape.chunks, ranks);
        EXPECT_EQ(crossed, 2 * ranks) << "one part of a rank, there and back";
    }
}

}  // namespace
}  // namespace pccl::schedule
