// SPDX-License-Identifier: Apache-2.0

// What the two ends of a communicator send over its sockets.
//
// A socket is opened by the handshake of PCCL (csrc/transport/control/handshake.h), with a
// SocketRole. The sender then chooses among the sockets that have connected, and sends a Begin over
// each of these; the receiver answers over each with its Identity. From then on sockets carry
// pieces, one after the other: a PieceHeader and bytes of one message. A socket that breaks after
// the choice is a path of the communicator still, which is lost.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/transport/control/introduction.h"

namespace pccl::nccl {

inline constexpr std::size_t kMostPaths = 8;

/// Bytes of a message that one piece carries, where there are several paths. Over one path, a piece
/// is a whole message.
inline constexpr std::size_t kPieceBytes = 256 * kKiB;

/// A message of up to this many bytes is copied at either end, and leaves with its header.
inline constexpr std::size_t kInlineBytes = 128;

/// Name of a host or an interface, cut to fit.
template <std::size_t kBytes>
struct WireName {
    std::array<char, kBytes> text{};

    static WireName of(std::string_view name) {
        WireName wire;
        std::copy_n(name.data(), std::min(name.size(), kBytes), wire.text.data());
        return wire;
    }
    /// Returns the name, without characters that could forge a line of a log.
    [[nodiscard]] std::string get() const {
        std::string name(text.begin(), std::ranges::find(text, '\0'));
        for (char& c : name)
            if (c <= ' ' || c > '~') c = '?';
        return name;
    }
};
using InterfaceName = WireName<16>;
using HostName = WireName<32>;

/// Purpose of a socket, in its introduction.
struct SocketRole {
    std::array<std::uint8_t, 8> communicator{};  // random: sockets of one have the same
    std::uint8_t path = 0;
    std::array<std::uint8_t, 7> reserved{};
    InterfaceName interface{};  // of the sender
    HostName host{};            // of the sender
};
static_assert(sizeof(SocketRole) == 64 && transport::FitsPurpose<SocketRole>);

struct Begin {
    static constexpr std::uint32_t kMagic = 0x42504e50;
    std::uint32_t magic = kMagic;
    std::uint32_t paths = 0;  // bit i: the communicator has path i

    [[nodiscard]] bool is_valid(std::size_t path) const {
        return magic == kMagic && paths < (1U << kMostPaths) && ((paths >> path) & 1U) != 0;
    }
};
static_assert(sizeof(Begin) == 8);

/// Description of the receiver.
struct Identity {
    static constexpr std::uint32_t kMagic = 0x49504e50;
    std::uint32_t magic = kMagic;
    std::int32_t rank = kNoRank;
    HostName host{};
    std::array<InterfaceName, kMostPaths> interfaces{};
};
static_assert(sizeof(Identity) == 168);

struct PieceHeader {
    static constexpr std::uint32_t kMagic = 0x50504e50;
    std::uint32_t magic = kMagic;
    std::uint32_t sequence = 0;  // of the message
    std::uint64_t message_bytes = 0;
    std::uint64_t offset = 0;  // of the piece in its message

    /// Returns whether its message comes before that of number `end`.
    [[nodiscard]] bool is_before(std::uint32_t end) const {
        return static_cast<std::int32_t>(end - sequence) > 0;
    }
    /// Returns the bytes of the piece that follow the header.
    [[nodiscard]] std::size_t length(std::size_t piece_bytes) const {
        return std::min<std::size_t>(message_bytes - offset, piece_bytes);
    }
    [[nodiscard]] bool is_valid(std::size_t piece_bytes) const {
        const bool is_in_message = offset < message_bytes || (offset == 0 && message_bytes == 0);
        return magic == kMagic && is_in_message && offset % piece_bytes == 0;
    }
};
static_assert(sizeof(PieceHeader) == 24);

/// What a receiver sends over each of several paths before it closes them, and after each message
/// once a path is lost: the acknowledgements of the lost path may be lost, too.
struct Receipt {
    static constexpr std::uint32_t kMagic = 0x52504e50;
    std::uint32_t magic = kMagic;
    std::uint32_t end = 0;  // all messages before this one have arrived
};
static_assert(sizeof(Receipt) == 8);

/// Returns the number of pieces of a message; an empty one has a piece, too.
inline std::size_t pieces_of(std::size_t message_bytes, std::size_t piece_bytes) {
    return message_bytes == 0 ? 1 : (message_bytes - 1) / piece_bytes + 1;
}

}  // namespace pccl::nccl
