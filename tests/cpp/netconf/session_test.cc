// SPDX-License-Identifier: Apache-2.0
#include "csrc/netconf/session.h"

#include <gmock/gmock.h>

#include "csrc/base/text/text.h"
#include "csrc/netconf/operations.h"
#include "tests/cpp/netconf/scripted_stream.h"
#include "tests/fakes/deadlines.h"

namespace pccl::netconf {
namespace {

using fakes::test_deadline;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// As in RFC 6241, section 8.1.
std::string server_hello(std::string_view versions) {
    std::string text =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<hello xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\">\n  <capabilities>\n";
    for (const char version : versions)
        text += concat("    <capability>\n      urn:ietf:params:netconf:base:1.", version,
                       "\n    </capability>\n");
    return text +
           "    <capability>\n      urn:ietf:params:netconf:capability:startup:1.0\n"
           "    </capability>\n  </capabilities>\n  <session-id>4</session-id>\n</hello>\n]]>]]>";
}

std::string reply(std::string_view id, std::string_view content = "<ok/>") {
    return concat("<rpc-reply message-id=\"", id,
                  "\" xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\">", content, "</rpc-reply>");
}

std::string rpc(std::string_view id, std::string_view operation) {
    return concat(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><rpc "
        "xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\" message-id=\"",
        id, "\">", operation, "</rpc>");
}

/// For what does not come.
Deadline soon() { return Deadline::after(std::chrono::milliseconds(20)); }

class SessionTest : public ::testing::Test {
   protected:
    Status connect(std::string_view versions = "01") {
        script_.said = server_hello(versions);
        return session_.connect(test_deadline());
    }
    void answers(std::string_view message) {
        script_.said += framed(message, session_.capabilities().framing());
    }
    Result<Reply> commit(Deadline deadline = test_deadline()) {
        return session_.call("<commit/>", deadline);
    }

    Script script_;
    Session session_{std::make_unique<ScriptedStream>(script_)};
};

TEST_F(SessionTest, SendsAndReadsTheHelloOfTheRfc) {
    ASSERT_TRUE(connect("0").is_ok());
    EXPECT_EQ(session_.capabilities().session_id, 4U);
    EXPECT_TRUE(session_.capabilities().has("capability:startup:1.0"));
    EXPECT_FALSE(session_.capabilities().has("capability:startup"));
    EXPECT_EQ(script_.heard,
              "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
              "<hello xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\"><capabilities>"
              "<capability>urn:ietf:params:netconf:base:1.0</capability>"
              "<capability>urn:ietf:params:netconf:base:1.1</capability>"
              "</capabilities></hello>]]>]]>");
}

TEST_F(SessionTest, ChunksOnlyWhereBothSpeakVersionOneOne) {
    for (const std::string_view versions : {"0", "01"}) {
        Script script{.said = server_hello(versions)};
        Session session(std::make_unique<ScriptedStream>(script));
        ASSERT_TRUE(session.connect(test_deadline()).is_ok());
        script.heard.clear();
        const Framing framing = versions == "0" ? Framing::kEndOfMessage : Framing::kChunked;
        script.said = framed(reply("1"), framing);
        EXPECT_TRUE(session.call("<commit/>", test_deadline()).is_ok());
        EXPECT_EQ(script.heard, framed(rpc("1", "<commit/>"), framing));
    }
}

TEST_F(SessionTest, CountsItsMessagesAndMovesThemByteForByte) {
    script_.at_a_time = 1;
    ASSERT_TRUE(connect().is_ok());
    for (const std::string_view id : {"1", "2", "3"}) {
        script_.heard.clear();
        answers(reply(id));
        session_.request("<commit/>");
        Result<std::optional<Reply>> got = session_.advance();
        while (got.is_ok() && !got->has_value()) got = session_.advance();
        ASSERT_TRUE(got.is_ok());
        EXPECT_EQ((**got).message_id, id);
        EXPECT_EQ(script_.heard, framed(rpc(id, "<commit/>"), Framing::kChunked));
    }
}

// RFC 6241, section 7.5: what a server answers when the lock is held by another session.
TEST_F(SessionTest, TellsAllOfAnError) {
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
        Script script{.said = server_hello("01")};
        Session session(std::make_unique<ScriptedStream>(script));
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
        Script script{.said = "\r\n " + server_hello(versions) + "\n"};
        Session session(std::make_unique<ScriptedStream>(script));
        ASSERT_TRUE(session.connect(test_deadline()).is_ok());
        for (const std::string_view id : {"1", "2"}) {
            script.said += framed(declared + reply(id) + "\n", framing) + "\n";
            const auto got = session.call("<commit/>", test_deadline());
            EXPECT_TRUE(got.is_ok()) << got.status().message();
        }
    }
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
        Script script{.said = server_hello("01") + framed(message, Framing::kChunked)};
        Session session(std::make_unique<ScriptedStream>(script));
        ASSERT_TRUE(session.connect(test_deadline()).is_ok());
        const auto got = session.call("<commit/>", test_deadline());
        EXPECT_EQ(got.status().code(), StatusCode::kPeerLost) << message;
        EXPECT_THAT(got.status().message(), HasSubstr("no NETCONF")) << message;
        EXPECT_TRUE(session.is_over());
    }
}

TEST_F(SessionTest, RefusesAReplyToWhatWasNeverAsked) {
    ASSERT_TRUE(connect().is_ok());
    answers(reply("7"));
    EXPECT_THAT(commit().status().message(), HasSubstr("no message-id of ours"));
}

TEST_F(SessionTest, RefusesAHelloThatIsNone) {
    for (const std::string_view hello :
         {"SSH-2.0-x]]>]]>", "<hello/>]]>]]>",
          "<hello xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\"><capabilities/>"
          "<session-id>1</session-id></hello>]]>]]>",
          "<hello xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\"><capabilities><capability>"
          "urn:ietf:params:netconf:base:1.0</capability></capabilities></hello>]]>]]>"}) {
        Script script{.said = std::string(hello)};
        Session session(std::make_unique<ScriptedStream>(script));
        const Status got = session.connect(test_deadline());
        EXPECT_EQ(got.code(), StatusCode::kPeerLost) << hello;
        EXPECT_THAT(got.message(), HasSubstr("no hello of a NETCONF server")) << hello;
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
    EXPECT_THAT(script_.heard, IsEmpty());
}

}  // namespace
}  // namespace pccl::netconf
