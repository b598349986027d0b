// SPDX-License-Identifier: Apache-2.0
#include "csrc/netconf/session.h"

#include <gmock/gmock.h>

#include "csrc/netconf/operations.h"
#include "tests/cpp/netconf/scripted_session.h"
#include "tests/cpp/netconf/scripted_stream.h"
#include "tests/fakes/deadlines.h"

namespace pccl::netconf {
namespace {

using fakes::test_deadline;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// For what does not come.
Deadline soon() { return Deadline::after(std::chrono::milliseconds(20)); }

TEST_F(SessionTest, CountsItsMessagesAndMovesThemByteForByte) {
    script_.at_a_time = 1;
    ASSERT_TRUE(connect().is_ok());
    for (const std::string_view id : {"1", "2", "3"}) {
        script_.received.clear();
        answers(reply(id));
        session_.request("<commit/>");
        Result<std::optional<Reply>> got = session_.advance();
        while (got.is_ok() && !got->has_value()) got = session_.advance();
        ASSERT_TRUE(got.is_ok());
        EXPECT_EQ((**got).message_id, id);
        EXPECT_EQ(script_.received, framed(rpc(id, "<commit/>"), Framing::kChunked));
    }
}

TEST_F(SessionTest, DropsLateRepliesAndNotifications) {
    ASSERT_TRUE(connect().is_ok());
    session_.request("<validate/>");
    answers("<notification xmlns=\"urn:ietf:params:xml:ns:netconf:notification:1.0\"/>");
    answers(reply("1", "<data/>"));
    answers(reply("2"));
    const auto second = commit();
    ASSERT_TRUE(second.is_ok());
    EXPECT_EQ(second->message_id, "2");
    EXPECT_NE(second->content.child("ok"), nullptr);
}

// Each would go on for ever if advance() did as long as there are messages.
TEST_F(SessionTest, HoldsItsDeadlineAgainstMessagesWithoutEnd) {
    for (const std::string& message :
         {std::string("<notification xmlns=\"urn:ietf:params:xml:ns:netconf:notification:1.0\"/>"),
          reply("1", "<data/>")}) {
        Script script{.reported = server_hello("01")};
        NetconfSession session(std::make_unique<ScriptedStream>(script));
        ASSERT_TRUE(session.connect(test_deadline()).is_ok());
        session.request("<get/>");
        script.without_end = framed(message, Framing::kChunked);
        const auto late = session.call("<commit/>", soon());
        EXPECT_EQ(late.status().code(), StatusCode::kTimeout);
        EXPECT_TRUE(session.is_over());
    }
}

TEST_F(SessionTest, GoesOnBehindManyMessagesThatAreNoReply) {
    ASSERT_TRUE(connect().is_ok());
    for (int i = 0; i < 20000; ++i) answers("<notification/>");
    answers(reply("1"));
    EXPECT_TRUE(commit().is_ok());
}

TEST_F(SessionTest, TakesWhiteSpaceAroundMessagesAndBeforeDeclarations) {
    const std::string declared = "\n<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    for (const std::string_view versions : {"0", "01"}) {
        const Framing framing = versions == "0" ? Framing::kEndOfMessage : Framing::kChunked;
        Script script{.reported = "\r\n " + server_hello(versions) + "\n"};
        NetconfSession session(std::make_unique<ScriptedStream>(script));
        ASSERT_TRUE(session.connect(test_deadline()).is_ok());
        for (const std::string_view id : {"1", "2"}) {
            script.reported += framed(declared + reply(id) + "\n", framing) + "\n";
            const auto got = session.call("<commit/>", test_deadline());
            EXPECT_TRUE(got.is_ok()) << got.status().message();
        }
    }
}

TEST_F(SessionTest, IsOverOnceADeadlineHasPassed) {
    ASSERT_TRUE(connect().is_ok());
    const auto late = commit(soon());
    EXPECT_EQ(late.status().code(), StatusCode::kTimeout);
    EXPECT_THAT(late.status().message(), HasSubstr("commit"));
    answers(reply("1"));
    answers(reply("2"));
    EXPECT_EQ(commit().status().code(), StatusCode::kTimeout);
    EXPECT_EQ(session_.connect(test_deadline()).code(), StatusCode::kOk);
}

TEST_F(SessionTest, TakesTheAnswerThatCameBeforeTheEnd) {
    ASSERT_TRUE(connect().is_ok());
    answers(reply("1"));
    script_.end = Status::peer_lost(kNoRank, "closed");
    EXPECT_TRUE(commit().is_ok());
    EXPECT_EQ(commit().status().code(), StatusCode::kPeerLost);
}

TEST_F(SessionTest, HandsOnWhyAConnectionWasRefused) {
    script_.refusal = Status(StatusCode::kMismatch, "another host key");
    EXPECT_EQ(session_.connect(test_deadline()).code(), StatusCode::kMismatch);
    EXPECT_THAT(script_.received, IsEmpty());
}

}  // namespace
}  // namespace pccl::netconf
