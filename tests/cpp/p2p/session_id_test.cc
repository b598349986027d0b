// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include <pccl/session.h>

namespace pccl::p2p {
namespace {

TEST(SessionNameTest, NamesAreShortAndPlain) {
    for (const std::string& name : {std::string(), std::string("a b"), std::string("\n"),
                                    std::string(65, 'x'), std::string("\xC3\xA4")})
        EXPECT_EQ(Session::create({.name = name}).status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(Session::create({.name = "x", .transports = "pigeon"}).status().code(),
              StatusCode::kInvalidArgument);
    EXPECT_EQ(Session::create({.name = "x", .listen = "203.0.113.7"}).status().code(),
              StatusCode::kUnavailable);
}

}  // namespace
}  // namespace pccl::p2p
