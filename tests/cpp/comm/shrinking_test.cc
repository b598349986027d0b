// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/diagnosis/shrinking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "csrc/comm/membership/agreement.h"

namespace pccl::comm {
namespace {

using ::testing::HasSubstr;

TEST(ShrinkStateTest, AGroupIsShrunkOnceAndOnlyFurther) {
    ShrinkState state;
    const std::vector<Rank> one{2};
    const std::vector<Rank> other{3};
    const std::vector<Rank> both{2, 3};
    EXPECT_TRUE(state.begin(one).is_ok());
    EXPECT_THAT(state.begin(one).message(), HasSubstr("another thread"));
    state.renounce(one);
    state.publish({});
    EXPECT_THAT(state.begin(other).message(), HasSubstr("leave out rank 2, too"));
    EXPECT_TRUE(state.begin(both).is_ok());
    state.publish({.stage = Shrinking::ShrinkStage::kDecided});
    EXPECT_THAT(state.begin(both).message(), HasSubstr("has been shrunk"));
}

}  // namespace
}  // namespace pccl::comm
