// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "csrc/cluster/drivers/make_driver.h"
#include "tests/cpp/cluster/transactions.h"

namespace pccl::cluster {
namespace {

TEST_F(TransactionTest, SwitchesAFabricOfThisProcess) {
    const auto fabric = make_fabric_driver();
    members_ = {{.name = "fabric", .driver = fabric.get(), .from = {}, .to = kNew}};
    EXPECT_EQ(run().ending, Ending::kSwitched);
    std::swap(members_[0].from, members_[0].to);
    options_.interrupted = [&] { return Status::aborted("ctrl-c"); };
    EXPECT_EQ(run().ending, Ending::kRefused);
    options_.interrupted = nullptr;
    EXPECT_EQ(run().ending, Ending::kSwitched);
}

}  // namespace
}  // namespace pccl::cluster
