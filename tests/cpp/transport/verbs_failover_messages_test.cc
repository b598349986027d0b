// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "csrc/base/bytes.h"
#include "csrc/transport/verbs/failover.h"
#include "tests/cpp/transport/verbs_link_ends.h"

namespace pccl::transport::verbs {
namespace {

FailoverRequest failover_request() {
    return {.sequence = 3,
            .lane = 2,
            .pieces = {{.channel = 0, .begin = 100, .bytes = 65'536},
                       {.channel = 1, .begin = std::uint64_t{1} << 40, .bytes = 1}}};
}

FailoverAnswer failover_answer() { return {.sequence = 3, .has_arrived = {true, false, true}}; }

TEST(FailoverMessagesTest, TheyComeBackAsTheyWereAlsoInALongerMailbox) {
    for (const std::string behind : {"", "bytes of an earlier message"}) {
        const auto request = FailoverRequest::parse(failover_request().serialise() + behind);
        ASSERT_TRUE(request.is_ok()) << request.status().to_string();
        EXPECT_EQ(request->sequence, 3U);
        EXPECT_EQ(request->lane, 2);
        EXPECT_EQ(request->pieces, failover_request().pieces);
        const auto answer = FailoverAnswer::parse(failover_answer().serialise() + behind);
        ASSERT_TRUE(answer.is_ok()) << answer.status().to_string();
        EXPECT_EQ(answer->sequence, 3U);
        EXPECT_EQ(answer->has_arrived, failover_answer().has_arrived);
    }
}

TEST(FailoverMessagesTest, TheLongestFitIntoTheMailbox) {
    FailoverRequest request = failover_request();
    request.pieces.resize(FailoverRequest::kMostPieces, request.pieces[0]);
    EXPECT_LE(request.serialise().size(), kMailboxBytes);
    EXPECT_TRUE(FailoverRequest::parse(request.serialise()).is_ok());
    request.pieces.push_back(request.pieces[0]);
    EXPECT_FALSE(FailoverRequest::parse(request.serialise()).is_ok());
    FailoverAnswer answer = failover_answer();
    answer.has_arrived.resize(FailoverRequest::kMostPieces + 1);
    EXPECT_FALSE(FailoverAnswer::parse(answer.serialise()).is_ok());
}

TEST(FailoverMessagesTest, TruncatedBytesAreRefused) {
    const std::string request = failover_request().serialise();
    for (std::size_t length = 0; length < request.size(); ++length)
        EXPECT_EQ(FailoverRequest::parse(request.substr(0, length)).status().code(),
                  StatusCode::kInvalidArgument);
    const std::string answer = failover_answer().serialise();
    for (std::size_t length = 0; length < answer.size(); ++length)
        EXPECT_EQ(FailoverAnswer::parse(answer.substr(0, length)).status().code(),
                  StatusCode::kInvalidArgument);
}

TEST(FailoverMessagesTest, AFlippedBitIsRefusedOrPartOfTheValue) {
    for_each_flip(failover_request().serialise(), [](const std::string& changed) {
        const auto parsed = FailoverRequest::parse(changed);
        if (!parsed.is_ok()) return;
        EXPECT_EQ(parsed->serialise(), changed.substr(0, parsed->serialise().size()));
        for (const PostedPiece& piece : parsed->pieces) EXPECT_GE(piece.end(), piece.begin);
    });
    for_each_flip(failover_answer().serialise(), [](const std::string& changed) {
        const auto parsed = FailoverAnswer::parse(changed);
        EXPECT_TRUE(!parsed.is_ok() || parsed->serialise().size() <= changed.size());
    });
}

TEST(FailoverMessagesTest, PiecesThatCannotBeAreRefused) {
    FailoverRequest request = failover_request();
    request.pieces[0].channel = kChannels;
    EXPECT_FALSE(FailoverRequest::parse(request.serialise()).is_ok());
    request = failover_request();
    request.pieces[0].begin = ~std::uint64_t{0};
    EXPECT_FALSE(FailoverRequest::parse(request.serialise()).is_ok());
}

}  // namespace
}  // namespace pccl::transport::verbs
