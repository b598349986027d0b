// SPDX-License-Identifier: Apache-2.0

// How many ranks may go on without the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "csrc/comm/membership/agreement.h"
#include "tests/cpp/comm/world.h"

namespace pccl::comm {
namespace {

using ::testing::HasSubstr;

class QuorumTest : public ::testing::Test {
   protected:
    static bool may_go_on(int size, const std::vector<Rank>& staying,
                          std::optional<int> least = {}) {
        return check_quorum(size, staying, least).is_ok();
    }
};

TEST_F(QuorumTest, MoreThanHalfGoOnAndHalfWithRank0) {
    EXPECT_TRUE(may_go_on(3, {1, 2}));
    EXPECT_FALSE(may_go_on(3, {0}));
    EXPECT_TRUE(may_go_on(4, {0, 3}));
    EXPECT_FALSE(may_go_on(4, {1, 2}));
    EXPECT_TRUE(may_go_on(2, {0}));
    EXPECT_FALSE(may_go_on(2, {1}));
    EXPECT_TRUE(may_go_on(1, {0}));
}

TEST_F(QuorumTest, OfTwoSidesOneGoesOn) {
    for (const int size : {2, 3, 4, 5, 6})
        for (unsigned side = 0; side < 1U << size; ++side) {
            std::vector<Rank> ranks;
            for (Rank rank = 0; rank < size; ++rank)
                if ((side >> rank & 1U) != 0) ranks.push_back(rank);
            EXPECT_NE(may_go_on(size, ranks), may_go_on(size, others_of(ranks, size)));
        }
}

TEST_F(QuorumTest, TheCallerDecidesHowFewMayGoOn) {
    EXPECT_TRUE(may_go_on(4, {3}, 1));
    EXPECT_FALSE(may_go_on(4, {0, 1, 2}, 4));
    for (const int wrong : {-1, 0, 5})
        EXPECT_EQ(check_quorum(4, std::vector<Rank>{0, 1, 2}, wrong).code(),
                  StatusCode::kInvalidArgument);
}

TEST_F(QuorumTest, TheErrorNamesTheMissingRanksAndTheRemedy) {
    const Status few = check_quorum(4, std::vector<Rank>{2}, {});
    EXPECT_EQ(few.code(), StatusCode::kUnavailable);
    EXPECT_EQ(few.message(),
              "1 of 4 ranks would be left, fewer than half of them: the others may go on; ranks 0, "
              "1, 3 are missing; least=1 goes on all the same");
    EXPECT_THAT(check_quorum(2, std::vector<Rank>{1}, {}).message(), HasSubstr("without rank 0"));
    EXPECT_THAT(check_quorum(2, std::vector<Rank>{1}, 2).message(),
                HasSubstr("at least 2 are required; rank 0 is missing"));
}

}  // namespace
}  // namespace pccl::comm
