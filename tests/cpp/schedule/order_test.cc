// SPDX-License-Identifier: Apache-2.0

// Every generator along orders of ranks other than the natural one.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "csrc/schedule/verifier/verifier.h"
#include "tests/cpp/schedule/catalogue.h"

namespace pccl::schedule {
namespace {

RankOrder shuffled(int ranks, unsigned seed) {
    RankOrder order(static_cast<std::size_t>(ranks));
    std::iota(order.begin(), order.end(), 0);
    std::mt19937 random(seed);
    std::shuffle(order.begin(), order.end(), random);
    return order;
}

class OrderedScheduleTest : public ::testing::TestWithParam<SourcePtr> {};

TEST_P(OrderedScheduleTest, IsProvenAlongAnyOrder) {
    for (int ranks = 1; ranks <= 17; ++ranks) {
        const RankOrder order = shuffled(ranks, static_cast<unsigned>(ranks));
        for (Rank root = 0; root < testing::roots(GetParam(), ranks); ++root) {
            const Shape shape = testing::shape_of(GetParam(), ranks, root, 2);
            const auto schedule = generate(*GetParam(), shape, order);
            ASSERT_TRUE(schedule.is_ok()) << schedule.status().to_string();
            for (const Placement placement : testing::placements(shape.kind)) {
                const auto verdict = verify(*schedule, placement);
                ASSERT_TRUE(verdict.is_ok())
                    << ranks << " ranks, root " << root << ": " << verdict.status().to_string();
                EXPECT_TRUE(verdict->bit_identical);
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, OrderedScheduleTest, ::testing::ValuesIn(testing::all_sources()),
                         [](const auto& source) { return testing::name_of(source.param); });

TEST(OrderTest, RefusesWhatIsNoOrder) {
    const SourcePtr ring = built_in("ring", CollectiveKind::kAllReduce).value();
    const Shape shape = least_shape(*ring, 3);
    for (const RankOrder& order : {RankOrder{0, 1}, RankOrder{0, 1, 1}, RankOrder{0, 1, 3},
                                   RankOrder{0, -1, 2}, RankOrder{0, 1, 2, 3}})
        EXPECT_EQ(generate_program(*ring, shape, 0, order).status().code(),
                  StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pccl::schedule
