// SPDX-License-Identifier: Apache-2.0
#include "csrc/netconf/hello.h"

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

TEST_F(SessionTest, SendsAndReadsTheHelloOfTheRfc) {
    ASSERT_TRUE(connect("0").is_ok());
    EXPECT_EQ(session_.capabilities().session_id, 4U);
    EXPECT_TRUE(session_.capabilities().has("capability:startup:1.0"));
    EXPECT_FALSE(session_.capabilities().has("capability:startup"));
    EXPECT_EQ(script_.received,
              "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
              "<hello xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\"><capabilities>"
              "<capability>urn:ietf:params:netconf:base:1.0</capability>"
              "<capability>urn:ietf:params:netconf:base:1.1</capability>"
              "</capabilities></hello>]]>]]>");
}

TEST_F(SessionTest, ChunksOnlyWhereBothUseVersionOneOne) {
    for (const std::string_view versions : {"0", "01"}) {
        Script script{.reported = server_hello(versions)};
        NetconfSession session(std::make_unique<ScriptedStream>(script));
        ASSERT_TRUE(session.connect(test_deadline()).is_ok());
        script.received.clear();
        const Framing framing = versions == "0" ? Framing::kEndOfMessage : Framing::kChunked;
        script.reported = framed(reply("1"), framing);
        EXPECT_TRUE(session.call("<commit/>", test_deadline()).is_ok());
        EXPECT_EQ(script.received, framed(rpc("1", "<commit/>"), framing));
    }
}

TEST_F(SessionTest, RefusesAHelloThatIsNone) {
    for (const std::string_view hello :
         {"SSH-2.0-x]]>]]>", "<hello/>]]>]]>",
          "<hello xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\"><capabilities/>"
          "<session-id>1</session-id></hello>]]>]]>",
          "<hello xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\"><capabilities><capability>"
          "urn:ietf:params:netconf:base:1.0</capability></capabilities></hello>]]>]]>"}) {
        Script script{.reported = std::string(hello)};
        NetconfSession session(std::make_unique<ScriptedStream>(script));
        const Status got = session.connect(test_deadline());
        EXPECT_EQ(got.code(), StatusCode::kPeerLost) << hello;
        EXPECT_THAT(got.message(), HasSubstr("no hello of a NETCONF server")) << hello;
    }
}

}  // namespace
}  // namespace pccl::netconf
