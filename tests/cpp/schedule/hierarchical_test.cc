// SPDX-License-Identifier: Apache-2.0

// Collectives of several hosts: right on every placement, and no byte leaves a host that need not.
#include "csrc/schedule/generators/hierarchical.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "csrc/schedule/verifier/verifier.h"
#include "tests/cpp/schedule/catalogue.h"

namespace pccl::schedule {
namespace {

using Sizes = std::vector<int>;

class HierarchicalTest : public ::testing::TestWithParam<Sizes> {
   protected:
    static int ranks() { return std::reduce(GetParam().begin(), GetParam().end()); }
    static int hosts() { return static_cast<int>(GetParam().size()); }
    static bool is_even() {
        return std::ranges::all_of(GetParam(), [](int size) { return size == GetParam()[0]; });
    }
    static int host_of(Rank rank) {
        int host = 0;
        for (int end = GetParam()[0]; rank >= end;
             end += GetParam()[static_cast<std::size_t>(host)])
            ++host;
        return host;
    }
    /// Chunks that each host sends to others.
    static std::vector<long long> chunks_out(const Schedule& schedule) {
        std::vector<long long> out(GetParam().size());
        for (Rank rank = 0; rank < ranks(); ++rank)
            for (const Lane& lane : schedule.programs[static_cast<std::size_t>(rank)].lanes)
                for (const Step& step : lane)
                    if (step.to.is_used() && host_of(step.to.peer) != host_of(rank))
                        out[static_cast<std::size_t>(host_of(rank))] += count_of(step);
        return out;
    }
};

TEST_P(HierarchicalTest, IsRightAndHasItsStatedCost) {
    for (const SourcePtr& source : hierarchical(GetParam())) {
        SCOPED_TRACE(to_string(source->kind));
        const Shape shape = least_shape(*source, ranks());
        const auto schedule = generate(*source, shape);
        ASSERT_TRUE(schedule.is_ok()) << schedule.status().to_string();
        for (const Placement placement : testing::placements(source->kind)) {
            const auto verdict = verify(*schedule, placement);
            ASSERT_TRUE(verdict.is_ok()) << verdict.status().to_string();
            EXPECT_TRUE(verdict->bit_identical);
            EXPECT_EQ(verdict->takes_uneven, source->takes_uneven);
            const int fewer = is_even() ? 0 : 1;
            EXPECT_GE(verdict->rounds, source->cost(shape, 1).rounds - fewer);
            EXPECT_LE(verdict->rounds, source->cost(shape, 1).rounds);
        }
        EXPECT_EQ(source->longest_message(shape), testing::longest_message(*schedule));
    }
}

/// What others lack of a host's data must leave it, once for each of them; of a sum, as in any
/// reduce_scatter and all_gather among the hosts.
TEST_P(HierarchicalTest, NothingLeavesAHostThatNeedNot) {
    for (const SourcePtr& source : hierarchical(GetParam())) {
        const Shape shape = least_shape(*source, ranks());
        const std::vector<long long> out = chunks_out(*generate(*source, shape));
        const long long all = std::reduce(out.begin(), out.end());
        const long long others = hosts() - 1;
        SCOPED_TRACE(to_string(source->kind));
        if (source->kind == CollectiveKind::kAllReduce) {
            for (const long long chunks : out)
                EXPECT_EQ(chunks * hosts(), 2 * others * shape.chunks);
        } else {
            EXPECT_EQ(all, others * ranks());
        }
    }
}

TEST_P(HierarchicalTest, FollowsAnyOrderOfRanks) {
    RankOrder order(static_cast<std::size_t>(ranks()));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::reverse(order);
    std::ranges::rotate(order, order.begin() + 1);
    for (const SourcePtr& source : hierarchical(GetParam())) {
        const auto schedule = generate(*source, least_shape(*source, ranks()), order);
        EXPECT_TRUE(verify(*schedule, Placement::kOutOfPlace).is_ok()) << to_string(source->kind);
    }
}

INSTANTIATE_TEST_SUITE_P(Hosts, HierarchicalTest,
                         ::testing::Values(Sizes{2, 2}, Sizes{4, 4}, Sizes{8, 8}, Sizes{3, 3, 3},
                                           Sizes(8, 8), Sizes{1, 2}, Sizes{3, 5}, Sizes{5, 3, 1},
                                           Sizes{2, 2, 2, 2, 3}, Sizes{1, 1, 1, 7}, Sizes{4, 6}));

TEST(HierarchicalTest, HostsOfOneRankNeedNone) {
    EXPECT_THAT(hierarchical({1, 1, 1}), ::testing::IsEmpty());
    EXPECT_THAT(hierarchical({8}), ::testing::IsEmpty());
}

}  // namespace
}  // namespace pccl::schedule
