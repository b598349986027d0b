// SPDX-License-Identifier: Apache-2.0

// Data that links over a plug-in send: the offer of a receiver over TCP, and messages.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <pccl/status.h>
#include "csrc/sys/net_plugin/plugin.h"
#include "csrc/transport/control/answer.h"
#include "csrc/transport/transport.h"

namespace pccl::transport::netplugin {

/// Communicators of one channel, each over a device of its own.
inline constexpr std::size_t kMostLanes = 4;

/// Header of a message, in the same send: plug-ins need not return how many bytes came.
struct MessageHeader {
    static constexpr std::uint32_t kMagic = 0x4E500001;

    std::uint32_t magic = kMagic;
    std::uint32_t bytes = 0;     // 0: the lane ends
    std::uint64_t sequence = 0;  // of the message in its channel
};
inline constexpr std::size_t kHeaderBytes = sizeof(MessageHeader);
static_assert(kHeaderBytes == 16 && std::is_trivially_copyable_v<MessageHeader>);

/// Purpose of a sender's connection, in its introduction.
struct LinkPurpose {
    std::uint8_t lanes = 1;  // at most
};

/// Listening communicators of one device.
struct LaneOffer {
    std::int32_t rail = -1;                                    // of the device; -1: unknown
    std::array<sys::net_plugin::Handle, kChannels> handles{};  // by channel

    bool operator==(const LaneOffer&) const = default;
};

/// Offer of a receiver.
struct LinkOffer {
    static constexpr std::uint32_t kLeastMessage = 1024;
    static constexpr std::uint32_t kMostMessage = 1 << 24;
    static constexpr std::size_t kLongest = std::size_t{4} << 10;  // serialised

    std::uint32_t message_bytes = 0;  // most bytes of a message, without its header
    std::vector<LaneOffer> lanes{};   // 1 to kMostLanes

    bool operator==(const LinkOffer&) const = default;
    [[nodiscard]] std::string serialise() const;
    /// Parses bytes of any origin. kInvalidArgument names the place.
    static Result<LinkOffer> parse(std::string_view bytes);
};

/// Serialises an offer, or why there is none, with its length.
[[nodiscard]] std::string message_of(const Result<LinkOffer>& offer);

/// Receiver of one such message on a non-blocking socket.
class LinkOfferReader {
   public:
    /// Returns the offer once the message is whole. The peer's refusal, or malformed bytes, are the
    /// error. Does not block.
    Result<std::optional<LinkOffer>> advance(int socket);

   private:
    AnswerReader answer_{"a link over a net plug-in", LinkOffer::kLongest};
};

}  // namespace pccl::transport::netplugin
