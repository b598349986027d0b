// SPDX-License-Identifier: Apache-2.0

// Messages that two connected sessions exchange, and the interface of their receivers:
// notifications of their programs, the matching of messages with tags (matcher.h), and inquiries
// about published memory (inquiries.h). Each of them is one message of the link (rma.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <pccl/status.h>
#include "csrc/abi/memory.h"
#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"

namespace pccl::p2p {

/// Notification from the peer's program.
struct Notified {
    std::vector<std::byte> bytes;
};
/// Request to write the next message of that tag there: at most `bytes` of `memory` from `offset`
/// on.
struct Wanted {
    std::uint64_t number = 0;  // names the receive in the messages about it
    std::uint64_t tag = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    abi::MemoryDescriptor memory{};
};
/// Notice that the message is written. It follows the message's bytes.
struct Sent {
    std::uint64_t number = 0;
    std::uint64_t bytes = 0;
};
/// Notice that the message does not come, with the reason.
struct Failed {
    std::uint64_t number = 0;
    Status why;
};
/// Notice that the receive is given up. The peer answers with Sent or Failed.
struct Withdrawn {
    std::uint64_t number = 0;
};

/// Inquiry for the memory published under a name.
struct Query {
    std::uint64_t number = 0;  // names the inquiry in its answer
    std::string name;
};
/// Request for any answer, to check that the peer is there.
struct Ping {
    std::uint64_t number = 0;
};
/// Answer with that memory, or with the reason why there is none. Any answer satisfies a ping.
struct Reply {
    std::uint64_t number = 0;
    std::optional<abi::MemoryDescriptor> memory{};
    std::string why{};
};

using ControlMessage = std::variant<Notified, Wanted, Sent, Failed, Withdrawn, Query, Ping, Reply>;

[[nodiscard]] PCCL_API std::vector<std::byte> serialise(const ControlMessage& message);
/// Parses untrusted bytes. Returns kInvalidArgument with the fault.
[[nodiscard]] PCCL_API Result<ControlMessage> parse_control_message(
    std::span<const std::byte> bytes);

/// Returns kInvalidArgument unless the notification has 1 to kMostNotification bytes.
[[nodiscard]] Status check_notification(std::span<const std::byte> bytes);
/// Returns the notification as a transfer sends it; empty for none. Returns kInvalidArgument for
/// one that is too long.
[[nodiscard]] Result<std::vector<std::byte>> payload_of(std::span<const std::byte> notification);

class Connection;

/// Returns the error for a peer whose messages violate the protocol.
[[nodiscard]] inline Status protocol_error(std::string_view what) {
    return Status::peer_lost(kNoRank,
                             concat("protocol error: the peer's session refers to ", what));
}

/// Receiver of a peer's control messages, except notifications.
class ControlReceiver {
   public:
    virtual ~ControlReceiver() = default;

    // Called by connections under their locks:

    /// Returns kPeerLost for a message that violates the protocol.
    virtual Status receive(const std::shared_ptr<Connection>& from, ControlMessage message) = 0;
    /// Announces a message that is received later, once GPU memory has the data before it, or
    /// never.
    virtual void preview(const ControlMessage& /*message*/) {}
    /// Reports that the connection is lost.
    virtual void lost(const Connection& connection, const Status& why) = 0;

    // Called by any thread without such locks:

    /// Handles the messages received so far; returns whether there was anything to do.
    virtual bool advance() = 0;
};

}  // namespace pccl::p2p
