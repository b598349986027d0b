// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "csrc/schedule/generators/generators.h"
#include "csrc/schedule/generators/link_graph.h"
#include "csrc/schedule/source.h"
#include "csrc/schedule/verifier/verifier.h"
#include "tests/cpp/schedule/link_shapes.h"

namespace pccl::schedule {
namespace {

using testing::both_ways;
using testing::torus;

TEST(LinkGraph, ARingLaidAlongATorusIsRightAndSendsAlongItsLinks) {
    const LinkGraph graph(12, both_ways(torus(3, 4)));
    for (const CollectiveKind kind :
         {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
        const SourcePtr ring = built_in("ring", kind).value();
        const Shape shape = least_shape(*ring, 12);
        EXPECT_FALSE(graph.carries(*ring, shape, {}));
        const SourcePtr laid = laid_along(ring, graph.ring()).value();
        EXPECT_NE(laid->digest, ring->digest);
        EXPECT_TRUE(graph.carries(*laid, shape, {}));
        const RankOrder backwards{11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
        EXPECT_EQ(generate(*laid, shape, backwards)->programs, generate(*laid, shape)->programs);
        const auto verdict = verify(*generate(*laid, shape));
        ASSERT_TRUE(verdict.is_ok()) << verdict.status().to_string();
        EXPECT_EQ(verdict->rounds, verify(*generate(*ring, shape))->rounds);
    }
    EXPECT_EQ(
        laid_along(built_in("ring", CollectiveKind::kAllGather).value(), {0, 1, 1}).status().code(),
        StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pccl::schedule
