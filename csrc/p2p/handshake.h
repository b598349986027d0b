// What two sessions send first on their two streams, before one-sided access takes these over.
//
//     caller                                             called
//       | -- stream, hello: who I am, what I reach -------> |   the secret is proven by the stream
//       | <- stream, welcome: whose hello, which way ------ |
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/p2p/connection_info.h"
#include "csrc/transport/link.h"

namespace pccl::p2p {

struct Hello {
    static constexpr std::size_t kMostEnded = 16;

    std::uint64_t number = 0;  // random: names the connection that is being made
    bool reaches = false;      // whether the caller reaches the called one's memory by itself
    bool is_fallback = false;  // it does not want to: for memory that it does not reach so
    /// Connections of the two that have ended for the caller: the called one may not have received
    /// it.
    std::vector<std::uint64_t> ended{};
    ConnectionInfo from;
};

struct Welcome {
    std::uint64_t number = 0;  // of the hello
    bool reaches = false;      // whether both do: then nobody serves requests
};

using HandshakeMessage = std::variant<Hello, Welcome>;

/// A length of 4 bytes, then as many.
[[nodiscard]] PCCL_API std::string frame_of(const HandshakeMessage& handshake);
/// What a frame holds, from bytes of any origin: kInvalidArgument names what is wrong.
[[nodiscard]] PCCL_API Result<HandshakeMessage> parse_handshake(std::string_view bytes);

/// Takes one handshake off a stream, and not a byte more.
class HandshakeReader {
   public:
    /// Once it is whole; nullopt until then. kPeerLost for a length that cannot be.
    Result<std::optional<HandshakeMessage>> next(transport::RecvLink& stream);

   private:
    [[nodiscard]] Result<std::size_t> missing() const;

    std::string frame_;  // what has come
};

}  // namespace pccl::p2p
