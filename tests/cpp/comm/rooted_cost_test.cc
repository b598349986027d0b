// SPDX-License-Identifier: Apache-2.0

// Choices of collectives with a root.
#include "csrc/costs/model/rooted_cost.h"

#include <gtest/gtest.h>

#include "csrc/base/ids.h"
#include "tests/cpp/comm/selections.h"
#include "tests/cpp/schedule/catalogue.h"

namespace pccl::comm {
namespace {

TEST(SelectorTest, RootsOfSingleTreesAreAheadOfTheirLeavesWithFewBytes) {
    for (const int ranks : {16, 32, 64})
        for (const std::size_t bytes : {kKiB, 4 * kKiB})
            EXPECT_EQ(chosen_over_sockets(ranks, CollectiveKind::kBroadcast, bytes), "binomial");
    // Of 16 ranks it took 53 to 61 us, two trees 57 to 67; with 256 KiB and 1 MiB 173 and 644, two
    // trees 144 and 418.
    EXPECT_EQ(chosen_over_sockets(16, CollectiveKind::kBroadcast, 64 * kKiB), "binomial");
    for (const int ranks : {16, 32})
        for (const std::size_t bytes : {256 * kKiB, kMiB})
            EXPECT_EQ(chosen_over_sockets(ranks, CollectiveKind::kBroadcast, bytes),
                      "double_binary_tree");
    for (const std::size_t bytes : {4 * kMiB, 64 * kMiB})
        EXPECT_EQ(chosen_over_sockets(4, CollectiveKind::kBroadcast, bytes), "ring");
}

/// A chain through 8 to 15 ranks took 52 to 480 us where all waited for it, and 12 to 35 us a call
/// where the root did not; a tree 35 to 40 and 25.
TEST(SelectorTest, RootsDoNotMakeChainsThatTheirLastRankWaitsLongFor) {
    for (const CollectiveKind kind : {CollectiveKind::kBroadcast, CollectiveKind::kReduce})
        for (const int ranks : {8, 12, 15, 16}) {
            EXPECT_EQ(chosen_over_sockets(ranks, kind, 4 * kKiB), "binomial") << ranks;
            EXPECT_NE(chosen_over_sockets(ranks, kind, 64 * kKiB), "ring") << ranks;
        }
}

TEST(SelectorTest, ATreesLongestChainCarriesMoreThanAnyRankSends) {
    for (const int ranks : {16, 32})
        EXPECT_EQ(chosen_over_sockets(ranks, CollectiveKind::kAllReduce, 64 * kKiB),
                  "recursive_halving");
}

}  // namespace
}  // namespace pccl::comm
