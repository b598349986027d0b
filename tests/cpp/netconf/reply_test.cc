// SPDX-License-Identifier: Apache-2.0
#include "csrc/netconf/reply.h"

#include <gmock/gmock.h>

#include "csrc/netconf/operations.h"
#include "csrc/netconf/session.h"
#include "tests/cpp/netconf/scripted_session.h"
#include "tests/cpp/netconf/scripted_stream.h"
#include "tests/fakes/deadlines.h"

namespace pccl::netconf {
namespace {

using fakes::test_deadline;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// RFC 6241, section 7.5: what a server answers when the lock is held by another session.
TEST_F(SessionTest, ReportsAllOfAnError) {
    ASSERT_TRUE(connect().is_ok());
    answers(reply("1",
                  "<rpc-error><error-type>protocol</error-type><error-tag>lock-denied</error-tag>"
                  "<error-severity>error</error-severity><error-app-tag>t</error-app-tag>"
                  "<error-path>/a/b</error-path><error-message xml:lang=\"en\">\n  Lock failed, "
                  "lock is already held\n</error-message><error-info><session-id>454</session-id>"
                  "</error-info></rpc-error>"));
    const auto denied = session_.call(lock(Datastore::kCandidate), test_deadline());
    ASSERT_TRUE(denied.is_ok());
    ASSERT_THAT(denied->errors, SizeIs(1));
    EXPECT_EQ(denied->errors[0], (RpcError{"protocol", "lock-denied", "error", "t", "/a/b",
                                           "Lock failed, lock is already held", "454"}));
    EXPECT_EQ(denied->status().code(), StatusCode::kUnavailable);
    EXPECT_EQ(denied->status().message(),
              "lock-denied (t): Lock failed, lock is already held at /a/b (held by session 454)");
    answers(reply("2"));
    EXPECT_TRUE(commit().is_ok());  // the session lives on
}

TEST_F(SessionTest, TakesAWarningForNoFailure) {
    ASSERT_TRUE(connect().is_ok());
    answers(reply("1",
                  "<rpc-error><error-tag>in-use</error-tag><error-severity>warning"
                  "</error-severity></rpc-error>"));
    const auto warned = commit();
    EXPECT_TRUE(warned->status().is_ok());
    EXPECT_THAT(warned->warnings, SizeIs(1));
}

TEST_F(SessionTest, ShowsNothingOfAnErrorThatDisturbsATerminal) {
    ASSERT_TRUE(connect().is_ok());
    answers(reply("1",
                  "<rpc-error><error-tag>x\xc2\x9b"
                  "2J</error-tag><error-severity>error"
                  "</error-severity><error-message>a\xe2\x80\xae"
                  "b\n\x7f"
                  "c\xc2\x85"
                  "d"
                  "</error-message></rpc-error>"));
    EXPECT_EQ(commit()->status().message(), "x?2J: a?b ?c?d");
    answers(
        "<rpc-reply xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\"><p\xe2\x80\x8d:a/>"
        "</rpc-reply>");
    EXPECT_THAT(commit().status().message(), HasSubstr("undeclared prefix in <p?:a>"));
}

TEST_F(SessionTest, EndsWithWhatMakesNoSense) {
    const std::string bomb = "<!DOCTYPE a [<!ENTITY b \"c\">]>" + reply("1");
    for (const std::string_view message :
         {std::string_view("<rpc-reply"), std::string_view("<data/>"), std::string_view(bomb),
          std::string_view("<rpc-reply xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\"/>")}) {
        Script script{.reported = server_hello("01") + framed(message, Framing::kChunked)};
        NetconfSession session(std::make_unique<ScriptedStream>(script));
        ASSERT_TRUE(session.connect(test_deadline()).is_ok());
        const auto got = session.call("<commit/>", test_deadline());
        EXPECT_EQ(got.status().code(), StatusCode::kPeerLost) << message;
        EXPECT_THAT(got.status().message(), HasSubstr("no NETCONF")) << message;
        EXPECT_TRUE(session.is_over());
    }
}

TEST_F(SessionTest, RefusesAReplyToNoRequest) {
    ASSERT_TRUE(connect().is_ok());
    answers(reply("7"));
    EXPECT_THAT(commit().status().message(), HasSubstr("no message-id of ours"));
}

}  // namespace
}  // namespace pccl::netconf
