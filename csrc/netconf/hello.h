// What both ends of a session say first: which NETCONF they speak, and what else (RFC 6241, 8.1).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/export.h"
#include "csrc/base/status.h"
#include "csrc/netconf/frame.h"

namespace pccl::netconf {

inline constexpr std::string_view kBaseNamespace = "urn:ietf:params:xml:ns:netconf:base:1.0";

/// What a server offers.
struct PCCL_API Capabilities {
    std::uint32_t session_id = 0;
    std::vector<std::string> uris;

    /// Whether the server has "urn:ietf:params:netconf:<name>", with parameters or without.
    [[nodiscard]] bool has(std::string_view name) const;
    /// Of all that follows the hellos.
    [[nodiscard]] Framing framing() const;
    friend bool operator==(const Capabilities&, const Capabilities&) = default;
};

/// Of this end, unframed.
[[nodiscard]] PCCL_API std::string client_hello();
/// kPeerLost where it is no hello of a server, or neither base:1.0 nor base:1.1 is in it.
[[nodiscard]] PCCL_API Result<Capabilities> parse_hello(std::string_view message);

}  // namespace pccl::netconf
