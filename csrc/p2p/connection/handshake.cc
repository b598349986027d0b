// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/connection/handshake.h"

#include <algorithm>
#include <limits>
#include <span>

#include "csrc/base/bytes.h"
#include "csrc/base/text/text.h"
#include "csrc/transport/rma.h"

namespace pccl::p2p {
namespace {

constexpr std::uint32_t kHandshakeMagic = 0x4835'5050;
constexpr std::size_t kHead = sizeof(std::uint32_t);
constexpr int kMostCores = std::numeric_limits<std::uint16_t>::max();
constexpr std::size_t kLongestFrame =
    ConnectionInfo::kLongest + Hello::kMostEnded * sizeof(std::uint64_t) + 64;

enum class HandshakeKind : std::uint8_t { kHello, kWelcome, kHelloFallback, kLane };

Status read_flag(ByteReader& in, bool& flag) {
    std::uint8_t value = 0;
    PCCL_TRY(in.u8(value));
    if (value > 1)
        return Status::invalid_argument(
            concat(int{value}, " is neither no nor yes at byte ", in.offset()));
    flag = value == 1;
    return Status::ok();
}

Status read_ended(ByteReader& in, std::vector<std::uint64_t>& ended) {
    std::uint8_t count = 0;
    PCCL_TRY(in.u8(count));
    if (count > Hello::kMostEnded)
        return Status::invalid_argument(
            concat(int{count}, " connections that have ended, of ", Hello::kMostEnded, " at most"));
    ended.resize(count);
    for (std::uint64_t& number : ended) PCCL_TRY(in.u64(number));
    return Status::ok();
}

Status read_cores(ByteReader& in, bootstrap::CoreClaim& claim) {
    std::uint16_t cores = 0;
    std::uint8_t threads = 0;
    PCCL_TRY(in.u16(cores));
    PCCL_TRY(in.u64(claim.core_set));
    PCCL_TRY(in.u8(threads));
    claim.cores = cores;
    claim.tcp_threads = threads - 1;
    return Status::ok();
}

Result<HandshakeMessage> read_hello(ByteReader& in, bool is_fallback) {
    Hello hello{.is_fallback = is_fallback, .from = {}};
    std::string from;
    PCCL_TRY(in.u64(hello.number));
    PCCL_TRY(read_flag(in, hello.reaches));
    PCCL_TRY(read_cores(in, hello.cores));
    PCCL_TRY(read_ended(in, hello.ended));
    PCCL_TRY(in.text(from, ConnectionInfo::kLongest));
    PCCL_TRY(in.finish());
    PCCL_ASSIGN_OR_RETURN(hello.from, ConnectionInfo::deserialise(from));
    return HandshakeMessage(std::move(hello));
}

Result<HandshakeMessage> read_welcome(ByteReader& in) {
    Welcome welcome;
    PCCL_TRY(in.u64(welcome.number));
    PCCL_TRY(read_flag(in, welcome.reaches));
    PCCL_TRY(read_cores(in, welcome.cores));
    PCCL_TRY(in.finish());
    return HandshakeMessage(welcome);
}

Result<HandshakeMessage> read_lane(ByteReader& in) {
    LaneGreeting greeting;
    PCCL_TRY(in.u64(greeting.number));
    PCCL_TRY(in.u8(greeting.lane));
    PCCL_TRY(read_flag(in, greeting.is_ready));
    PCCL_TRY(in.finish());
    return HandshakeMessage(greeting);
}

Result<HandshakeMessage> read_handshake(ByteReader& in) {
    std::uint32_t magic = 0;
    std::uint8_t kind = 0;
    PCCL_TRY(in.u32(magic));
    if (magic != kHandshakeMagic) return Status::invalid_argument("it does not start like one");
    PCCL_TRY(in.u8(kind));
    switch (static_cast<HandshakeKind>(kind)) {
        case HandshakeKind::kHello:
            return read_hello(in, false);
        case HandshakeKind::kWelcome:
            return read_welcome(in);
        case HandshakeKind::kHelloFallback:
            return read_hello(in, true);
        case HandshakeKind::kLane:
            return read_lane(in);
    }
    return Status::invalid_argument(concat("unknown kind ", int{kind}));
}

void put(ByteWriter& out, const bootstrap::CoreClaim& claim) {
    out.u16(static_cast<std::uint16_t>(std::min(claim.cores, kMostCores)));
    out.u64(claim.core_set);
    out.u8(static_cast<std::uint8_t>(claim.tcp_threads + 1));
}

void put(ByteWriter& out, const Hello& hello) {
    const auto kind = hello.is_fallback ? HandshakeKind::kHelloFallback : HandshakeKind::kHello;
    out.u8(static_cast<std::uint8_t>(kind));
    out.u64(hello.number);
    out.u8(hello.reaches ? 1 : 0);
    put(out, hello.cores);
    out.u8(static_cast<std::uint8_t>(hello.ended.size()));
    for (const std::uint64_t number : hello.ended) out.u64(number);
    out.text(hello.from.serialise());
}

void put(ByteWriter& out, const Welcome& welcome) {
    out.u8(static_cast<std::uint8_t>(HandshakeKind::kWelcome));
    out.u64(welcome.number);
    out.u8(welcome.reaches ? 1 : 0);
    put(out, welcome.cores);
}

void put(ByteWriter& out, const LaneGreeting& greeting) {
    out.u8(static_cast<std::uint8_t>(HandshakeKind::kLane));
    out.u64(greeting.number);
    out.u8(greeting.lane);
    out.u8(greeting.is_ready ? 1 : 0);
}

}  // namespace

std::string frame_of(const HandshakeMessage& handshake) {
    ByteWriter out;
    out.u32(kHandshakeMagic);
    std::visit([&out](const auto& kind) { put(out, kind); }, handshake);
    const std::string bytes = out.take();
    out.text(bytes);
    return out.take();
}

Result<HandshakeMessage> parse_handshake(std::string_view bytes) {
    ByteReader in(bytes);
    auto handshake = read_handshake(in);
    if (handshake.is_ok()) return handshake;
    return handshake.status().with_context("a session's handshake is not readable");
}

Result<std::optional<HandshakeMessage>> HandshakeReader::next(transport::RecvLink& stream) {
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(const std::size_t wanted, missing());
        if (wanted == 0) break;
        const std::size_t before = frame_.size();
        frame_.resize(before + wanted);
        const auto received = stream.receive(
            transport::kRmaChannel, std::as_writable_bytes(std::span(frame_).subspan(before)));
        frame_.resize(before + (received.is_ok() ? *received : 0));
        PCCL_TRY(received.status());
        if (*received == 0) return std::optional<HandshakeMessage>();
    }
    PCCL_ASSIGN_OR_RETURN(auto handshake, parse_handshake(std::string_view(frame_).substr(kHead)));
    return std::optional(std::move(handshake));
}

Result<std::size_t> HandshakeReader::missing() const {
    if (frame_.size() < kHead) return kHead - frame_.size();
    ByteReader in(std::string_view(frame_).substr(0, kHead));
    std::uint32_t length = 0;
    PCCL_TRY(in.u32(length));
    if (length > kLongestFrame)
        return Status::peer_lost(
            kNoRank, concat("its handshake has ", length, " bytes, of at most ", kLongestFrame));
    return kHead + length - frame_.size();
}

}  // namespace pccl::p2p
