// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/connection/control_message.h"

#include <string>
#include <string_view>

#include <pccl/memory.h>
#include <pccl/transfer.h>
#include "csrc/base/bytes.h"
#include "csrc/base/text/text.h"
#include "csrc/transport/memory_descriptor.h"
#include "csrc/transport/rma.h"

namespace pccl::p2p {
namespace {

enum class ControlKind : std::uint8_t {
    kNotified,
    kWanted,
    kSent,
    kFailed,
    kWithdrawn,
    kQuery,
    kFound,
    kNotFound,
    kPing,
};

constexpr std::size_t kLongestReason = 1024;
constexpr std::size_t kLongestDescriptor = 256;
static_assert(sizeof(ControlKind) + kMostNotification <= transport::RmaLink::kMostNotification);

void write(ByteWriter& out, const Notified& message) {
    out.u8(static_cast<std::uint8_t>(ControlKind::kNotified));
    out.raw(message.bytes);
}

void write(ByteWriter& out, const Wanted& message) {
    out.u8(static_cast<std::uint8_t>(ControlKind::kWanted));
    out.u64(message.number);
    out.u64(message.tag);
    out.u64(message.offset);
    out.u64(message.bytes);
    out.text(transport::serialise(message.memory));
}

void write(ByteWriter& out, const Sent& message) {
    out.u8(static_cast<std::uint8_t>(ControlKind::kSent));
    out.u64(message.number);
    out.u64(message.bytes);
}

void write(ByteWriter& out, const Failed& message) {
    out.u8(static_cast<std::uint8_t>(ControlKind::kFailed));
    out.u64(message.number);
    out.status(message.why, kLongestReason);
}

void write(ByteWriter& out, const Withdrawn& message) {
    out.u8(static_cast<std::uint8_t>(ControlKind::kWithdrawn));
    out.u64(message.number);
}

void write(ByteWriter& out, const Query& message) {
    out.u8(static_cast<std::uint8_t>(ControlKind::kQuery));
    out.u64(message.number);
    out.text(message.name);
}

void write(ByteWriter& out, const Ping& message) {
    out.u8(static_cast<std::uint8_t>(ControlKind::kPing));
    out.u64(message.number);
}

void write(ByteWriter& out, const Reply& message) {
    const auto kind = message.memory ? ControlKind::kFound : ControlKind::kNotFound;
    out.u8(static_cast<std::uint8_t>(kind));
    out.u64(message.number);
    out.text(message.memory ? transport::serialise(*message.memory)
                            : message.why.substr(0, kLongestReason));
}

Result<ControlMessage> read_notified(std::span<const std::byte> bytes) {
    PCCL_TRY(check_notification(bytes));
    return ControlMessage(Notified{{bytes.begin(), bytes.end()}});
}

Result<ControlMessage> read_wanted(ByteReader& in) {
    Wanted message;
    std::string memory;
    PCCL_TRY(in.u64(message.number));
    PCCL_TRY(in.u64(message.tag));
    PCCL_TRY(in.u64(message.offset));
    PCCL_TRY(in.u64(message.bytes));
    PCCL_TRY(in.text(memory, kLongestDescriptor));
    PCCL_TRY(in.finish());
    PCCL_ASSIGN_OR_RETURN(message.memory, transport::parse_memory_descriptor(memory));
    return ControlMessage(message);
}

Result<ControlMessage> read_sent(ByteReader& in) {
    Sent message;
    PCCL_TRY(in.u64(message.number));
    PCCL_TRY(in.u64(message.bytes));
    PCCL_TRY(in.finish());
    return ControlMessage(message);
}

Result<ControlMessage> read_failed(ByteReader& in) {
    Failed message;
    PCCL_TRY(in.u64(message.number));
    PCCL_TRY(in.status(message.why, kLongestReason));
    PCCL_TRY(in.finish());
    if (message.why.is_ok()) return Status::invalid_argument("a failure that is none");
    return ControlMessage(std::move(message));
}

Result<ControlMessage> read_withdrawn(ByteReader& in) {
    Withdrawn message;
    PCCL_TRY(in.u64(message.number));
    PCCL_TRY(in.finish());
    return ControlMessage(message);
}

Result<ControlMessage> read_asked(ByteReader& in) {
    Query message;
    PCCL_TRY(in.u64(message.number));
    PCCL_TRY(in.text(message.name, SessionId::kLongestName));
    PCCL_TRY(in.finish());
    PCCL_TRY(check_name(message.name));
    return ControlMessage(std::move(message));
}

Result<ControlMessage> read_ping(ByteReader& in) {
    Ping message;
    PCCL_TRY(in.u64(message.number));
    PCCL_TRY(in.finish());
    return ControlMessage(message);
}

Result<ControlMessage> read_found(ByteReader& in) {
    Reply message;
    std::string memory;
    PCCL_TRY(in.u64(message.number));
    PCCL_TRY(in.text(memory, kLongestDescriptor));
    PCCL_TRY(in.finish());
    PCCL_ASSIGN_OR_RETURN(message.memory, transport::parse_memory_descriptor(memory));
    return ControlMessage(std::move(message));
}

Result<ControlMessage> read_not_found(ByteReader& in) {
    Reply message;
    PCCL_TRY(in.u64(message.number));
    PCCL_TRY(in.text(message.why, kLongestReason));
    PCCL_TRY(in.finish());
    return ControlMessage(std::move(message));
}

}  // namespace

std::vector<std::byte> serialise(const ControlMessage& message) {
    ByteWriter out;
    std::visit([&out](const auto& kind) { write(out, kind); }, message);
    const std::string text = out.take();
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

Result<ControlMessage> parse_control_message(std::span<const std::byte> bytes) {
    ByteReader in({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    std::uint8_t kind = 0;
    PCCL_TRY(in.u8(kind));
    switch (static_cast<ControlKind>(kind)) {
        case ControlKind::kNotified:
            return read_notified(bytes.subspan(in.offset()));
        case ControlKind::kWanted:
            return read_wanted(in);
        case ControlKind::kSent:
            return read_sent(in);
        case ControlKind::kFailed:
            return read_failed(in);
        case ControlKind::kWithdrawn:
            return read_withdrawn(in);
        case ControlKind::kQuery:
            return read_asked(in);
        case ControlKind::kFound:
            return read_found(in);
        case ControlKind::kNotFound:
            return read_not_found(in);
        case ControlKind::kPing:
            return read_ping(in);
    }
    return Status::invalid_argument(concat("a message of unknown kind ", int{kind}));
}

Status check_notification(std::span<const std::byte> bytes) {
    if (!bytes.empty() && bytes.size() <= kMostNotification) return Status::ok();
    return Status::invalid_argument(concat("a notification of ", bytes.size(), " bytes: 1 to ",
                                           kMostNotification, " are possible"));
}

Result<std::vector<std::byte>> payload_of(std::span<const std::byte> notification) {
    if (notification.empty()) return std::vector<std::byte>();
    PCCL_TRY(check_notification(notification));
    return serialise(Notified{{notification.begin(), notification.end()}});
}

}  // namespace pccl::p2p
