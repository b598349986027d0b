// SPDX-License-Identifier: Apache-2.0

// Reply of a server to a request (RFC 6241, 4.2 to 4.4): ok, data, or errors with their tags.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/sys/xml/xml_reader.h"

namespace pccl::netconf {

/// One <rpc-error>; fields that the server left out are empty.
struct PCCL_API RpcError {
    std::string type;  // transport, rpc, protocol or application
    std::string tag;   // "lock-denied", "invalid-value" ...
    std::string severity;
    std::string app_tag;
    std::string path;
    std::string message;
    std::string session_id;  // of lock-denied: holder of the lock; "0": no NETCONF session

    /// Returns whether the error names another session as the obstacle.
    [[nodiscard]] bool names_session() const { return !session_id.empty() && session_id != "0"; }
    /// Returns "lock-denied: it is locked (held by session 7)".
    [[nodiscard]] std::string to_string() const;
    friend bool operator==(const RpcError&, const RpcError&) = default;
};

struct PCCL_API Reply {
    std::string message_id;
    std::vector<RpcError> errors;    // of severity error
    std::vector<RpcError> warnings;  // the server carried out the request nevertheless
    sys::XmlElement content;         // the whole <rpc-reply>

    /// Returns the first error: kUnavailable where it may go away by itself (locks),
    /// kResourceExhausted, kUnsupported, or kInvalidArgument. The server has carried out no part of
    /// the request.
    [[nodiscard]] Status status() const;
    friend bool operator==(const Reply&, const Reply&) = default;
};

/// Parses a reply; kPeerLost where it is malformed.
[[nodiscard]] PCCL_API Result<Reply> parse_reply(sys::XmlElement root);

}  // namespace pccl::netconf
