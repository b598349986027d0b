// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include <pccl/status.h>
#include "csrc/base/assert.h"

namespace pccl {
namespace {

Result<int> half(int value) {
    if (value % 2 != 0) return Status::invalid_argument("odd");
    return value / 2;
}

Result<int> quarter(int value) {
    PCCL_ASSIGN_OR_RETURN(const int once, half(value));
    PCCL_ASSIGN_OR_RETURN(const int twice, half(once));
    return twice;
}

Status must_be_even(int value) {
    PCCL_TRY(half(value).status());
    return Status::ok();
}

TEST(StatusTest, OkHasNoMessageAndBlamesNobody) {
    const Status status;
    EXPECT_TRUE(status.is_ok());
    EXPECT_EQ(status.code(), StatusCode::kOk);
    EXPECT_EQ(status.message(), "");
    EXPECT_EQ(status.peer(), kNoRank);
    EXPECT_EQ(status.to_string(), "ok");
    EXPECT_TRUE(status.with_context("anything").is_ok());
}

TEST(StatusTest, ContextKeepsTheCodeAndThePeer) {
    const Status status = Status::peer_lost(3, "closed its connection").with_context("all_reduce");
    EXPECT_EQ(status.code(), StatusCode::kPeerLost);
    EXPECT_EQ(status.peer(), 3);
    EXPECT_EQ(status.to_string(), "peer_lost: all_reduce: closed its connection");
}

TEST(StatusTest, ErrnoBecomesTheCodeThatTheCallerActsOn) {
    EXPECT_EQ(Status::from_errno(ENOMEM, "x").code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(Status::from_errno(EMFILE, "x").message(), testing::HasSubstr("(ulimit -n)"));
    EXPECT_EQ(Status::from_errno(EPERM, "x").code(), StatusCode::kUnsupported);
    EXPECT_EQ(Status::from_errno(ECONNREFUSED, "x").code(), StatusCode::kUnavailable);
    EXPECT_EQ(Status::from_errno(ENOENT, "open it").message(),
              "open it: No such file or directory");
}

TEST(ResultTest, MacrosPassValuesAndErrorsOn) {
    ASSERT_TRUE(quarter(12).is_ok());
    EXPECT_EQ(*quarter(12), 3);
    EXPECT_EQ(quarter(6).status().message(), "odd");
    EXPECT_TRUE(must_be_even(2).is_ok());
    EXPECT_EQ(must_be_even(1).code(), StatusCode::kInvalidArgument);
}

TEST(ResultTest, AResultOfAStringHoldsEither) {
    const Result<std::string> text(std::string("value"));
    EXPECT_TRUE(text.is_ok());
    EXPECT_TRUE(text.status().is_ok());
    const Result<std::string> none(Status::unavailable("gone"));
    EXPECT_FALSE(none.is_ok());
}

TEST(StatusDeathTest, ABrokenInvariantNamesItself) {
    EXPECT_DEATH(PCCL_ASSERT(1 + 1 == 3), "1 \\+ 1 == 3 is false at .*status_test");
}

}  // namespace
}  // namespace pccl
