#include "csrc/transport/control/farewell.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "csrc/base/peer_name.h"
#include "csrc/base/text.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::transport {
namespace {

constexpr std::string_view kHasLeft = " has left the group: ";
constexpr std::string_view kRankName = "rank ";
constexpr std::string_view kIt = "it ";  // the one that has left, in the words of a notice

/// What the first who left has said, as it is true of that one whoever passes it on.
std::string told_first(std::string_view text) {
    const std::size_t place = text.rfind(kHasLeft);
    if (place == std::string_view::npos) return std::string(text);
    const std::string_view said = text.substr(place + kHasLeft.size());
    const std::size_t leaver = text.rfind(kRankName, place);
    if (!said.starts_with(kIt) || leaver == std::string_view::npos) return std::string(said);
    return concat(text.substr(leaver, place - leaver), " ", said.substr(kIt.size()));
}

StatusCode code_of(std::uint32_t number) {
    const bool is_known = number <= static_cast<std::uint32_t>(StatusCode::kInternal);
    return is_known ? static_cast<StatusCode>(number) : StatusCode::kInternal;
}

/// Bytes of a peer, safe for a log.
std::string printable(const std::array<char, 504>& bytes) {
    std::string text(bytes.begin(), std::find(bytes.begin(), bytes.end(), '\0'));
    std::replace_if(text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return text;
}

}  // namespace

Farewell farewell_for(const Status& reason) {
    Farewell farewell{
        .code = static_cast<std::uint32_t>(reason.code()), .peer = reason.peer(), .text = {}};
    // At least one zero ends the text.
    told_first(reason.message()).copy(farewell.text.data(), farewell.text.size() - 1);
    return farewell;
}

Status why_gone(const Farewell& farewell, const Departure& departure) {
    return why_gone(Status(code_of(farewell.code), printable(farewell.text), farewell.peer),
                    departure);
}

Status why_gone(const Status& reason, const Departure& departure) {
    const std::string message =
        concat(peer_name(departure.leaver), kHasLeft, told_first(reason.message()));
    const Rank blamed = reason.peer();
    const bool blames_another = blamed >= 0 && blamed < departure.ranks && blamed != departure.self;
    const Rank peer = blames_another ? blamed : departure.leaver;
    if (reason.code() == StatusCode::kMismatch) return Status::mismatch(peer, message);
    if (reason.code() == StatusCode::kTimeout && blames_another)
        return Status::timeout(message, peer);
    if (reason.code() == StatusCode::kPeerLost) return Status::peer_lost(peer, message);
    return Status::peer_lost(departure.leaver, message);
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
                "it has no descriptors (ulimit -n there) or no memory left; its own error says "
                "which");
        default:
            return Status(code == StatusCode::kOk ? StatusCode::kInternal : code,
                          concat("it failed: ", to_string(code)), notice.peer);
    }
}

void say_farewell(int socket, const Status& reason) {
    const Farewell farewell = farewell_for(reason);
    // A peer that is gone hears nothing, and one that does not read has no need to.
    static_cast<void>(sys::send_some(socket, std::as_bytes(std::span(&farewell, 1))));
    sys::shut_down(socket);
}

Status FarewellListener::listen(int socket) {
    if (!gone_.is_ok()) return gone_;
    const auto rest = std::as_writable_bytes(std::span(&farewell_, 1)).subspan(received_);
    const auto received = sys::receive_some(socket, rest);
    if (!received.is_ok()) {
        is_silent_ = received.status().code() == StatusCode::kTimeout;
        gone_ = Status::peer_lost(departure_.leaver, concat(peer_name(departure_.leaver), ": ",
                                                            received.status().message()));
        return gone_;
    }
    received_ += *received;
    if (received_ == sizeof farewell_) gone_ = why_gone(farewell_, departure_);
    return gone_;
}

}  // namespace pccl::transport
