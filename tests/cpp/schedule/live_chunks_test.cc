// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/simulator/live_chunks.h"

#include <gtest/gtest.h>

#include "tests/cpp/schedule/catalogue.h"
#include "tests/cpp/schedule/replays.h"

namespace pccl::schedule {
namespace {

TEST(ReplayTest, PatHoldsFewChunksWhereItAggregatesFew) {
    const auto peak = [](int ranks, int aggregation) {
        return played("pat", CollectiveKind::kReduceScatter, one_switch(ranks, kSpeed), kBytes,
                      aggregation)
            .peak_chunks;
    };
    // A sum for each level of the tree, and what is under way: log2 of the ranks.
    EXPECT_LE(peak(1024, 1), 2 * 10);
    EXPECT_GE(peak(1024, 0), 512);
}

}  // namespace
}  // namespace pccl::schedule
