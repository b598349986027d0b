// What two sessions send each other once they are connected: notifications of their programs, how
// messages with tags find their place (matcher.h), and what memory they have published
// (inquiries.h). Each is one message of the link (rma.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "csrc/abi/memory.h"
#include "csrc/base/status.h"

namespace pccl::p2p {

/// Of a notification, in bytes.
inline constexpr std::size_t kMostNotification = 16 * kKiB;

/// A notification of the peer's program.
struct Notified {
    std::vector<std::byte> bytes;
};
/// "Write the next message of that tag there": `bytes` of `memory` from `offset` on, at most.
struct Wanted {
    std::uint64_t number = 0;  // names the receive in what is sent about it
    std::uint64_t tag = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    abi::MemoryDescriptor memory{};
};
/// "It is there": follows its bytes.
struct Sent {
    std::uint64_t number = 0;
    std::uint64_t bytes = 0;
};
/// "It does not come", and why.
struct Failed {
    std::uint64_t number = 0;
    Status why;
};
/// "I want it no more": a Sent or a Failed answers.
struct Withdrawn {
    std::uint64_t number = 0;
};

/// "What have you published under that name?"
struct Asked {
    std::uint64_t number = 0;  // names the question in its answer
    std::string name;
};
/// "Are you there?"
struct Ping {
    std::uint64_t number = 0;
};
/// That memory, or why there is none; for a ping, any answer is enough.
struct Answered {
    std::uint64_t number = 0;
    std::optional<abi::MemoryDescriptor> memory{};
    std::string why{};
};

using ControlMessage =
    std::variant<Notified, Wanted, Sent, Failed, Withdrawn, Asked, Ping, Answered>;

[[nodiscard]] PCCL_API std::vector<std::byte> serialise(const ControlMessage& message);
/// From bytes of any origin: kInvalidArgument names what is wrong.
[[nodiscard]] PCCL_API Result<ControlMessage> parse_control_message(
    std::span<const std::byte> bytes);

/// kInvalidArgument unless it has 1 to kMostNotification bytes.
[[nodiscard]] Status check_notification(std::span<const std::byte> bytes);
/// As a transfer sends it: empty where there is none. kInvalidArgument for one that is too long.
[[nodiscard]] Result<std::vector<std::byte>> payload_of(std::span<const std::byte> notification);

}  // namespace pccl::p2p
