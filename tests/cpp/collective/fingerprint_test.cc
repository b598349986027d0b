// SPDX-License-Identifier: Apache-2.0
#include "csrc/collective/fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/collective/collective_calls.h"

namespace pccl::comm {
namespace {

using ::testing::HasSubstr;

TEST(FingerprintTest, RemembersWhatNobodyCompared) {
    abi::CollectiveHeader ours = call(kBroadcast, 8, 0);
    abi::CollectiveHeader theirs = ours;
    ours.history = history_after(call(kBroadcast, 8, 0));
    theirs.history = history_after(call(kBroadcast, 8, 1));
    const Status status = compare(ours, theirs, {.self = 0, .peer = 1});
    EXPECT_EQ(status.code(), StatusCode::kMismatch);
    EXPECT_THAT(status.message(), HasSubstr("a collective before"));
    EXPECT_EQ(history_after(of_pairs(call(kAllToAll, 8, 0))),
              history_after(of_pairs(call(kAllToAll, 9, 0))));
    EXPECT_NE(history_after(call(kAllToAll, 8, 0)), history_after(call(kAllToAll, 9, 0)));
}

}  // namespace
}  // namespace pccl::comm
