// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/model/circuits.h"

#include <gmock/gmock.h>

namespace pccl::cluster {
namespace {

using ::testing::ElementsAre;

TEST(CircuitsTest, ChangesOnlyWhatDiffers) {
    const Change change = change_between({{1, 2}, {2, 3}, {4, 5}}, {{1, 2}, {2, 4}, {6, 3}});
    EXPECT_EQ(change, (Change{.remove = {{2, 3}, {4, 5}}, .add = {{2, 4}, {6, 3}}}));
    EXPECT_THAT(change.removed_for_good(), ElementsAre(Circuit{4, 5}));
    EXPECT_TRUE(change_between({{1, 2}}, {{1, 2}}).is_empty());
}

TEST(CircuitsTest, RecognizesAChangeThatIsHalfDone) {
    const Circuits from = {{1, 2}, {2, 3}};
    const Circuits to = {{1, 3}, {2, 2}};
    for (const Circuits& half : {Circuits{}, Circuits{{1, 2}}, Circuits{{1, 2}, {2, 2}}, from, to})
        EXPECT_TRUE(is_between(half, from, to));
    EXPECT_FALSE(is_between({{1, 4}}, from, to));
}

}  // namespace
}  // namespace pccl::cluster
