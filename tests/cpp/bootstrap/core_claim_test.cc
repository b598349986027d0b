// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/core_claim.h"

#include <gtest/gtest.h>

namespace pccl::bootstrap {
namespace {

TEST(CoreClaimTest, CoresAreSharedEqually) {
    const CoreClaim claim{.cores = 8};
    EXPECT_EQ(claim.threads(1), 8);
    EXPECT_EQ(claim.threads(3), 2);
    EXPECT_EQ(claim.threads(100), 1);
    EXPECT_EQ(claim.threads(0), 8);
}

TEST(CoreClaimTest, TheSettingReplacesTheShare) {
    const CoreClaim claim{.cores = 8, .tcp_threads = 3};
    EXPECT_EQ(claim.threads(8), 4);
    const CoreClaim none{.cores = 8, .tcp_threads = 0};
    EXPECT_EQ(none.threads(1), 1);
}

TEST(CoreClaimTest, AProcessHasOneCoreAtLeastAndTheSameClaimEachTime) {
    const CoreClaim claim = CoreClaim::of_process();
    EXPECT_GE(claim.cores, 1);
    EXPECT_EQ(CoreClaim::of_process(), claim);
}

}  // namespace
}  // namespace pccl::bootstrap
