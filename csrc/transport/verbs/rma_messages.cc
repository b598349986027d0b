// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/rma_messages.h"

#include "csrc/base/bytes.h"
#include "csrc/base/text/text.h"

namespace pccl::transport::verbs {
namespace {

constexpr std::size_t kFrameHead = 4;
constexpr std::size_t kLongestFailure = 1 * kKiB;

}  // namespace

std::string RmaMessage::serialise() const {
    ByteWriter out;
    out.u8(static_cast<std::uint8_t>(kind));
    out.u8(lane);
    out.u32(pair);
    out.u32(immediates);
    out.status(failure, kLongestFailure);
    if (has_end()) out.text(serialise_lane(end));
    return out.take();
}

Result<RmaMessage> RmaMessage::parse(std::string_view bytes) {
    ByteReader in(bytes);
    RmaMessage message;
    std::uint8_t kind = 0;
    std::string end;
    PCCL_TRY(in.u8(kind));
    PCCL_TRY(in.u8(message.lane));
    if (kind > static_cast<std::uint8_t>(Kind::kCredit) || message.lane >= LinkEnd::kMostLanes)
        return Status::invalid_argument(
            concat("a message of kind ", int{kind}, " about lane ", int{message.lane}));
    message.kind = static_cast<Kind>(kind);
    PCCL_TRY(in.u32(message.pair));
    PCCL_TRY(in.u32(message.immediates));
    PCCL_TRY(in.status(message.failure, kLongestFailure));
    if (!message.has_end()) {
        PCCL_TRY(in.finish());
        return message;
    }
    PCCL_TRY(in.text(end, LinkEnd::kLongest));
    PCCL_TRY(in.finish());
    PCCL_ASSIGN_OR_RETURN(message.end, parse_lane(end));
    return message;
}

void RmaMailbox::add(const RmaMessage& message) {
    ByteWriter out;
    out.text(message.serialise());
    const std::string frame = out.take();
    const auto bytes = std::as_bytes(std::span(frame));
    unsent_.insert(unsent_.end(), bytes.begin(), bytes.end());
}

Status RmaMailbox::send() {
    if (unsent_.empty()) return Status::ok();
    PCCL_ASSIGN_OR_RETURN(const std::size_t sent, out_.send(kMessageChannel, unsent_, Flush::kNow));
    unsent_.erase(unsent_.begin(), unsent_.begin() + static_cast<std::ptrdiff_t>(sent));
    return Status::ok();
}

Result<std::optional<RmaMessage>> RmaMailbox::next() {
    PCCL_ASSIGN_OR_RETURN(const Bytes here, in_.peek(kMessageChannel));
    const std::string_view text(reinterpret_cast<const char*>(here.data()), here.size());
    if (text.size() < kFrameHead) return std::optional<RmaMessage>();
    std::uint32_t length = 0;
    PCCL_TRY(ByteReader(text).u32(length));
    if (length > RmaMessage::kLongest)
        return Status::peer_lost(kNoRank, concat("the peer sent a message of ", length, " bytes"));
    if (text.size() < kFrameHead + length) return std::optional<RmaMessage>();
    const auto message = RmaMessage::parse(text.substr(kFrameHead, length));
    in_.consume(kMessageChannel, kFrameHead + length);
    if (message.is_ok()) return std::optional(*message);
    return Status::peer_lost(
        kNoRank, concat("the peer sent a malformed message: ", message.status().message()));
}

}  // namespace pccl::transport::verbs
