// SPDX-License-Identifier: Apache-2.0

// First message of both ends of a session: their NETCONF versions and capabilities (RFC 6241, 8.1).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/netconf/frame.h"

namespace pccl::netconf {

inline constexpr std::string_view kBaseNamespace = "urn:ietf:params:xml:ns:netconf:base:1.0";

/// Capabilities of a server.
struct PCCL_API Capabilities {
    std::uint32_t session_id = 0;
    std::vector<std::string> uris;

    /// Returns whether the server has "urn:ietf:params:netconf:<name>", with parameters or without.
    [[nodiscard]] bool has(std::string_view name) const;
    /// Returns the framing of all messages after the hellos.
    [[nodiscard]] Framing framing() const;
    friend bool operator==(const Capabilities&, const Capabilities&) = default;
};

/// Returns the hello of this end, unframed.
[[nodiscard]] PCCL_API std::string client_hello();
/// Parses a server's hello. kPeerLost where it is malformed, or lists neither base:1.0 nor
/// base:1.1.
[[nodiscard]] PCCL_API Result<Capabilities> parse_hello(std::string_view message);

}  // namespace pccl::netconf
