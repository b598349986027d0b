// SPDX-License-Identifier: Apache-2.0

// Messages of the handshake, and the proofs over them. Only handshake.cc and server_handshake.h
// include this file.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "csrc/sys/crypto/sha256.h"
#include "csrc/sys/socket/socket.h"
#include "csrc/transport/control/introduction.h"

namespace pccl::transport::handshake {

inline constexpr std::array<char, 4> kMagic{'P', 'C', 'C', 'L'};
inline constexpr std::uint32_t kVersion = 8;

using Nonce = std::array<std::uint8_t, 32>;

struct ClientHello {
    std::array<char, 4> magic;
    std::uint32_t version;
    GroupId group;
    Nonce nonce;
};
static_assert(sizeof(ClientHello) == 56 && std::is_trivially_copyable_v<ClientHello>);

struct ServerProof {
    std::array<char, 4> magic;
    Nonce nonce;
    sys::Digest proof;
};
static_assert(sizeof(ServerProof) == 68 && std::is_trivially_copyable_v<ServerProof>);

struct WireRequest {
    std::int32_t source;
    std::int32_t destination;
    std::int32_t channel;
    std::int32_t group_size;
    std::uint32_t generation;
    std::uint8_t service;
    std::uint8_t transport;
    std::uint16_t reserved;
    Purpose purpose;
};
static_assert(sizeof(WireRequest) == 88 && std::is_trivially_copyable_v<WireRequest>);

struct ClientProof {
    WireRequest request;
    sys::Digest proof;
};
static_assert(sizeof(ClientProof) == 120 && std::is_trivially_copyable_v<ClientProof>);

enum class ServerVerdict : std::uint8_t {
    kUnanswered = 0,
    kAccepted = 1,
    kRefused = 2,
    kPutOff = 3
};
/// Message in place of the server's proof, to a client that has not sent its whole hello.
inline constexpr std::array<char, 4> kBusy{'P', 'C', 'C', 'B'};

/// The part of the exchange that both sides have seen so far.
struct Transcript {
    ClientHello hello{};
    Nonce server_nonce{};
    WireRequest request{};  // zero in the server's proof, which comes before it
};
static_assert(std::has_unique_object_representations_v<Transcript>);

template <typename Message>
std::span<const std::byte> bytes_of(const Message& message) {
    return std::as_bytes(std::span(&message, 1));
}

/// Computes a proof. The label keeps a proof of one side from passing for one of the other.
inline sys::Digest prove(const Secret& secret, std::string_view label,
                         const Transcript& transcript) {
    std::array<std::uint8_t, 16 + sizeof(Transcript)> message{};
    std::memcpy(message.data(), label.data(), std::min<std::size_t>(label.size(), 16));
    std::memcpy(message.data() + 16, &transcript, sizeof transcript);
    return sys::hmac_sha256(secret, message);
}
inline constexpr std::string_view kServerLabel = "pccl-server";
inline constexpr std::string_view kClientLabel = "pccl-client";

/// One fixed-size message, which arrives in pieces.
template <typename Message>
class Incoming {
   public:
    /// Returns true once the whole message is here. Never reads past it.
    Result<bool> receive_from(int fd) {
        const auto all = std::as_writable_bytes(std::span(&message_, 1));
        while (received_ < all.size()) {
            PCCL_ASSIGN_OR_RETURN(const std::size_t more,
                                  sys::receive_some(fd, all.subspan(received_)));
            if (more == 0) return false;
            received_ += more;
        }
        return true;
    }
    [[nodiscard]] const Message& message() const { return message_; }
    /// Returns whether the bytes so far match the magic of PCCL.
    [[nodiscard]] bool is_pccl() const {
        const std::size_t here = std::min(received_, kMagic.size());
        return std::memcmp(&message_, kMagic.data(), here) == 0;
    }

    [[nodiscard]] bool begins_with(std::span<const char> prefix) const {
        return received_ >= prefix.size() &&
               std::memcmp(&message_, prefix.data(), prefix.size()) == 0;
    }

   private:
    Message message_{};
    std::size_t received_ = 0;
};

/// Sends a message. Any message of a handshake fits an empty send buffer: a partial send means a
/// broken connection.
template <typename Message>
Status send_whole(int fd, const Message& message) {
    PCCL_ASSIGN_OR_RETURN(const std::size_t sent, sys::send_some(fd, bytes_of(message)));
    if (sent == sizeof message) return Status::ok();
    return Status::peer_lost(kNoRank, "the connection took only a part of a message");
}

}  // namespace pccl::transport::handshake
