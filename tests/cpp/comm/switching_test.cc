// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/diagnosis/switching.h"

#include <gtest/gtest.h>

namespace pccl::comm {
namespace {

TEST(SwitchStateTest, HasTheRanksThatReceivedTheResult) {
    SwitchState state;
    state.note_shown(2, {});
    EXPECT_FALSE(state.has_shown(2, 1));
    state.note_shown(2, {.number = 3});
    EXPECT_TRUE(state.has_shown(2, 3));
    EXPECT_FALSE(state.has_shown(2, 4));
    EXPECT_FALSE(state.has_shown(1, 3));
    state.note_shown(2, {.number = 1});
    EXPECT_TRUE(state.has_shown(2, 3));
}

}  // namespace
}  // namespace pccl::comm
