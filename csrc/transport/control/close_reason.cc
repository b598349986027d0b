// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/close_reason.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::transport {
namespace {

constexpr std::string_view kHasLeft = " has left the group: ";
constexpr std::string_view kRankName = "rank ";
constexpr std::string_view kIt = "it ";  // the leaver, in the text of a notice

/// Returns the reason of the first leaver, in words that stay true when others forward it.
std::string reported_first(std::string_view text) {
    const std::size_t place = text.rfind(kHasLeft);
    if (place == std::string_view::npos) return std::string(text);
    const std::string_view stated = text.substr(place + kHasLeft.size());
    const std::size_t leaver = text.rfind(kRankName, place);
    if (!stated.starts_with(kIt) || leaver == std::string_view::npos) return std::string(stated);
    return concat(text.substr(leaver, place - leaver), " ", stated.substr(kIt.size()));
}

StatusCode code_of(std::uint32_t number) {
    const bool is_known = number <= static_cast<std::uint32_t>(StatusCode::kInternal);
    return is_known ? static_cast<StatusCode>(number) : StatusCode::kInternal;
}

/// Returns a peer's bytes, safe for a log.
std::string printable(const std::array<char, 504>& bytes) {
    std::string text(bytes.begin(), std::find(bytes.begin(), bytes.end(), '\0'));
    std::replace_if(text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return text;
}

}  // namespace

CloseReason close_reason_for(const Status& reason) {
    CloseReason close_reason{
        .code = static_cast<std::uint32_t>(reason.code()), .peer = reason.peer(), .text = {}};
    // At least one zero ends the text.
    reported_first(reason.message()).copy(close_reason.text.data(), close_reason.text.size() - 1);
    return close_reason;
}

Status why_gone(const CloseReason& close_reason, const CloseContext& close_context) {
    return why_gone(
        Status(code_of(close_reason.code), printable(close_reason.text), close_reason.peer),
        close_context);
}

Status why_gone(const Status& reason, const CloseContext& close_context) {
    const std::string message =
        concat(peer_name(close_context.leaver), kHasLeft, reported_first(reason.message()));
    const Rank blamed = reason.peer();
    const bool blames_another =
        blamed >= 0 && blamed < close_context.ranks && blamed != close_context.self;
    const Rank peer = blames_another ? blamed : close_context.leaver;
    if (reason.code() == StatusCode::kMismatch) return Status::mismatch(peer, message);
    if (reason.code() == StatusCode::kTimeout && blames_another)
        return Status::timeout(message, peer);
    if (reason.code() == StatusCode::kPeerLost) return Status::peer_lost(peer, message);
    return Status::peer_lost(close_context.leaver, message);
}

Notice notice_of(const Status& reason) {
    return {.code = static_cast<std::uint32_t>(reason.code()), .peer = reason.peer()};
}

Status reason_of(const Notice& notice) {
    const auto code = code_of(notice.code);
    const std::string whom = concat("rank ", notice.peer);
    switch (code) {
        case StatusCode::kPeerLost:
            return Status::peer_lost(notice.peer, concat("it lost ", whom));
        case StatusCode::kTimeout:
            return Status::timeout(concat("it timed out waiting for ", whom), notice.peer);
        case StatusCode::kMismatch:
            return Status::mismatch(notice.peer, concat("it called something else than ", whom));
        case StatusCode::kResourceExhausted:
            return Status::resource_exhausted(
                "it has no descriptors (ulimit -n there) or no memory left; its own error "
                "names it");
        default:
            return Status(code == StatusCode::kOk ? StatusCode::kInternal : code,
                          concat("it failed: ", to_string(code)), notice.peer);
    }
}

void send_close_reason(int socket, const Status& reason) {
    const CloseReason close_reason = close_reason_for(reason);
    // A peer that is gone receives nothing, and a peer that does not read does not need the reason.
    static_cast<void>(sys::send_some(socket, std::as_bytes(std::span(&close_reason, 1))));
    sys::shut_down(socket);
}

Status CloseReasonReceiver::receive(int socket) {
    if (!gone_.is_ok()) return gone_;
    const auto rest = std::as_writable_bytes(std::span(&close_reason_, 1)).subspan(received_);
    const auto received = sys::receive_some(socket, rest);
    if (!received.is_ok()) {
        is_silent_ = received.status().code() == StatusCode::kTimeout;
        gone_ = Status::peer_lost(close_context_.leaver, concat(peer_name(close_context_.leaver),
                                                                ": ", received.status().message()));
        return gone_;
    }
    received_ += *received;
    if (received_ == sizeof close_reason_) gone_ = why_gone(close_reason_, close_context_);
    return gone_;
}

}  // namespace pccl::transport
