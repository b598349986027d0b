// SPDX-License-Identifier: Apache-2.0

// Wire format of TCP transports: the purpose of a socket.
#pragma once

#include <array>
#include <cstdint>

#include <pccl/status.h>
#include "csrc/transport/control/introduction.h"
#include "csrc/transport/tcp/path_choice.h"

namespace pccl::transport::tcp {

/// Identification of a socket among the sockets of its link and of others.
struct SocketPurpose {
    using LinkNonce = std::array<std::uint8_t, 16>;
    LinkNonce link{};
    /// Role of the socket: 0 carries kMessageChannel, 1 to data_sockets kCollectiveChannel; the
    /// last one is the watch, which carries nothing but a close reason, and shows whether the
    /// peer's host is there.
    std::uint32_t index = 0;
    std::uint32_t data_sockets = 1;  // 1 to kMostDataSockets
    std::uint32_t block_bytes = 0;   // kLeastBlock to kMostBlock
    /// 0: the link has one path, and its streams consist of blocks (stripes.h). 1 to kMostPaths:
    /// number of the path among several, and the streams consist of pieces (piece.h).
    std::uint32_t path = 0;
    /// Number of the attempt to connect this path. The first attempt of path 1 begins the link.
    std::uint32_t attempt = 0;

    static constexpr std::uint32_t kMostDataSockets = 16;
    static constexpr std::uint32_t kLeastBlock = 1 << 10;
    static constexpr std::uint32_t kMostBlock = 1 << 24;

    /// Returns the number of sockets of a link, or of one of its paths.
    [[nodiscard]] std::uint32_t sockets() const { return data_sockets + 2; }
    [[nodiscard]] bool is_one_of_several() const { return path > 0; }
    [[nodiscard]] bool begins_link() const { return path <= 1 && attempt == 0; }

    /// Parses a purpose; kInvalidArgument when a number is out of its range.
    static Result<SocketPurpose> decode(const Purpose& bytes) {
        const auto purpose = value_in<SocketPurpose>(bytes);
        if (purpose.data_sockets >= 1 && purpose.data_sockets <= kMostDataSockets &&
            purpose.index < purpose.sockets() && purpose.block_bytes >= kLeastBlock &&
            purpose.block_bytes <= kMostBlock && purpose.path <= kMostPaths) {
            return purpose;
        }
        return Status::invalid_argument("a proven peer describes a socket that cannot be");
    }
    [[nodiscard]] Purpose encode() const { return purpose_of(*this); }
};

}  // namespace pccl::transport::tcp
