// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/model/description.h"

#include <gtest/gtest.h>

#include "tests/cpp/cluster/opened_cluster.h"

namespace pccl::cluster {
namespace {

TEST_F(ClusterTest, UsesASecondSwitchWhereTheFirstHasNoPortLeft) {
    auto cluster = open();
    EXPECT_EQ(cluster->switch_phase("star", soon())->ending, Ending::kSwitched);
    EXPECT_EQ(a().running(), (Circuits{{1, 2}}));
    EXPECT_EQ(fakes_.at("b").running(), (Circuits{{1, 3}}));
}

}  // namespace
}  // namespace pccl::cluster
