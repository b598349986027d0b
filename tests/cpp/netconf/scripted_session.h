// SPDX-License-Identifier: Apache-2.0

// A session whose server is a script.
#pragma once

#include "csrc/base/text/text.h"
#include "csrc/netconf/operations.h"
#include "csrc/netconf/session.h"
#include "tests/cpp/netconf/scripted_stream.h"
#include "tests/fakes/deadlines.h"

namespace pccl::netconf {

using fakes::test_deadline;

// As in RFC 6241, section 8.1.
inline std::string server_hello(std::string_view versions) {
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

inline std::string reply(std::string_view id, std::string_view content = "<ok/>") {
    return concat("<rpc-reply message-id=\"", id,
                  "\" xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\">", content, "</rpc-reply>");
}

inline std::string rpc(std::string_view id, std::string_view operation) {
    return concat(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><rpc "
        "xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\" message-id=\"",
        id, "\">", operation, "</rpc>");
}

class SessionTest : public ::testing::Test {
   protected:
    Status connect(std::string_view versions = "01") {
        script_.reported = server_hello(versions);
        return session_.connect(test_deadline());
    }
    void answers(std::string_view message) {
        script_.reported += framed(message, session_.capabilities().framing());
    }
    Result<Reply> commit(Deadline deadline = test_deadline()) {
        return session_.call("<commit/>", deadline);
    }

    Script script_;
    NetconfSession session_{std::make_unique<ScriptedStream>(script_)};
};

}  // namespace pccl::netconf
