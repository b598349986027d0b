// SPDX-License-Identifier: Apache-2.0

// Handshake of two sessions on their two streams, before one-sided access takes these over.
//
//     caller                                             called
//       | -- stream, hello: identity, reach ----------------> |   the stream proves the secret
//       | <- stream, welcome: number of the hello, reach ---- |
//
// Streams of lanes (lanes.h) begin with a lane greeting instead, and a second one once both streams
// of the lane are there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <pccl/status.h>
#include "csrc/bootstrap/core_claim.h"
#include "csrc/p2p/connection/connection_info.h"
#include "csrc/transport/link.h"

namespace pccl::p2p {

struct Hello {
    static constexpr std::size_t kMostEnded = 16;

    std::uint64_t number = 0;  // random; names the new connection
    bool reaches = false;      // whether the caller reaches the called session's memory by itself
    bool is_fallback = false;  // for memory that the caller cannot copy by itself
    bootstrap::CoreClaim cores{};
    /// Connections of the two that the caller has ended. The called session may not have received
    /// these ends.
    std::vector<std::uint64_t> ended{};
    ConnectionInfo from;
};

struct Welcome {
    std::uint64_t number = 0;  // from the hello
    bool reaches = false;      // whether both do: then no side serves requests
    bootstrap::CoreClaim cores{};
};

struct LaneGreeting {
    std::uint64_t number = 0;  // of the connection
    std::uint8_t lane = 0;
    bool is_ready = false;  // whether the sender has received the greeting of the other stream
};

using HandshakeMessage = std::variant<Hello, Welcome, LaneGreeting>;

/// Returns a length of 4 bytes, then the message.
[[nodiscard]] PCCL_API std::string frame_of(const HandshakeMessage& handshake);
/// Parses the content of a frame, untrusted bytes. Returns kInvalidArgument with the fault.
[[nodiscard]] PCCL_API Result<HandshakeMessage> parse_handshake(std::string_view bytes);

/// Reader of one handshake. It takes no byte beyond it from the stream.
class HandshakeReader {
   public:
    /// Returns the handshake once it is complete, nullopt before; kPeerLost for an invalid length.
    Result<std::optional<HandshakeMessage>> next(transport::RecvLink& stream);

   private:
    [[nodiscard]] Result<std::size_t> missing() const;

    std::string frame_;  // received so far
};

}  // namespace pccl::p2p
