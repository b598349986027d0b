// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/machine/host_way.h"

#include <gtest/gtest.h>

namespace pccl::topo {
namespace {

TEST(JobTest, WordsThatAreNoWayAreRefused) {
    for (const char* text :
         {"", "24 3 0.5 0 date", "24 3 0.5 2 date node0", "0 3 0.5 0 date node0",
          "24 3 x 0 date node0", "24 3 nan 0 date node0", "24 3 0.5 0 date node0 more"})
        EXPECT_EQ(HostWay::parse(text).status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_FALSE(HostWay::parse(std::string(HostWay::kMostBytes + 1, '1')).is_ok());
}

}  // namespace
}  // namespace pccl::topo
