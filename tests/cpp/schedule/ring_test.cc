// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/cpp/schedule/catalogue.h"

namespace pccl::schedule {
namespace {

TEST(OrderTest, ARingTalksToItsNeighboursInTheOrder) {
    const RankOrder order{0, 2, 4, 1, 3, 5};
    for (const CollectiveKind kind :
         {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
        const SourcePtr ring = built_in("ring", kind).value();
        const Shape shape = least_shape(*ring, 6);
        for (std::size_t position = 0; position < order.size(); ++position) {
            const auto program = generate_program(*ring, shape, order[position], order);
            ASSERT_TRUE(program.is_ok());
            for (const Step& step : program->lanes.front())
                if (step.to.is_used()) {
                    EXPECT_EQ(step.to.peer, order[(position + 1) % order.size()]);
                }
        }
    }
}

}  // namespace
}  // namespace pccl::schedule
