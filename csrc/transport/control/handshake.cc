// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/handshake.h"

#include <algorithm>

#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/socket/interfaces.h"
#include "csrc/sys/socket/route.h"
#include "csrc/transport/control/handshake_messages.h"
#include "csrc/transport/control/unix_socket.h"

namespace pccl::transport {

using namespace handshake;  // NOLINT(google-build-using-namespace): the vocabulary of this file

namespace {

// A unix listener with a full queue makes no socket readable when it has room again.
constexpr Duration kRetryPause = std::chrono::milliseconds(2);

}  // namespace

class ClientHandshake {
   public:
    ClientHandshake(const ConnectArgs& args, const Introduction& introduction)
        : args_(args), request_(introduction.request) {
        transcript_.hello = {kMagic, kVersion, request_.group, {}};
        outgoing_ = {.source = request_.source,
                     .destination = request_.destination,
                     .channel = request_.channel,
                     .group_size = request_.group_size,
                     .generation = request_.generation,
                     .service = static_cast<std::uint8_t>(introduction.service),
                     .transport = introduction.transport,
                     .reserved = 0,
                     .purpose = introduction.purpose};
    }

    /// Starts over with a new connection.
    Status start() {
        state_ = HandshakeState::kConnecting;
        server_proof_ = {};
        verdict_ = {};
        transcript_.request = {};
        PCCL_TRY(sys::fill_random(transcript_.hello.nonce));
        PCCL_ASSIGN_OR_RETURN(fd_, sys::make_socket(args_.address, args_.stream));
        if (!args_.interface.empty()) PCCL_TRY(sys::connect_through(fd_.get(), args_.interface));
        return args_.source.is_ip() ? sys::connect_from(fd_.get(), args_.source) : Status::ok();
    }

    /// Makes as much progress as possible; returns ok, too, where the server has put it off.
    Status advance() {
        HandshakeState before = state_;
        do {
            before = state_;
            if (const Status fault = step(); !fault.is_ok())
                return was_put_off() ? Status::ok() : blame(fault);
        } while (state_ != before);
        return Status::ok();
    }

    /// Returns whether the server put it off: start() must follow.
    [[nodiscard]] bool was_put_off() const {
        return server_proof_.begins_with(kBusy) || verdict_.message() == ServerVerdict::kPutOff;
    }
    void count_put_off() { ++times_put_off_; }

    [[nodiscard]] bool is_done() const { return state_ == HandshakeState::kDone; }
    [[nodiscard]] bool is_connected() const { return state_ != HandshakeState::kConnecting; }
    [[nodiscard]] bool must_retry() const {
        return state_ == HandshakeState::kConnecting && args_.address.family() == AF_UNIX;
    }
    [[nodiscard]] sys::Interest interest() const {
        if (is_done() || must_retry()) return {};
        const bool connecting = state_ == HandshakeState::kConnecting;
        return {.fd = fd_.get(), .input = !connecting, .output = connecting};
    }
    [[nodiscard]] Status timeout() const {
        const auto* what =
            state_ == HandshakeState::kConnecting
                ? " did not answer in time"
                : " took the connection but did not go through its handshake in time";
        const std::string crowd = times_put_off_ == 0
                                      ? ""
                                      : concat(" (others crowd it: it has put this connection off ",
                                               times_put_off_, " times)");
        return Status::timeout(concat(peer_name(), what, crowd, route()), request_.destination);
    }
    [[nodiscard]] int fd() const { return fd_.get(); }
    [[nodiscard]] UniqueFd take_socket() { return std::move(fd_); }

   private:
    enum class HandshakeState { kConnecting, kServerProof, kVerdict, kDone };

    Status step() {
        switch (state_) {
            case HandshakeState::kConnecting:
                return connect();
            case HandshakeState::kServerProof:
                return answer();
            case HandshakeState::kVerdict:
                return conclude();
            case HandshakeState::kDone:
                break;
        }
        return Status::ok();
    }

    Status connect() {
        PCCL_ASSIGN_OR_RETURN(const bool connected, sys::connect_step(fd_.get(), args_.address));
        if (!connected) return Status::ok();
        state_ = HandshakeState::kServerProof;
        if (args_.address.family() == AF_UNIX) PCCL_TRY(require_same_user(fd_.get()));
        const Status sent = send_whole(fd_.get(), transcript_.hello);
        if (!sent.is_ok()) static_cast<void>(server_proof_.receive_from(fd_.get()));
        return sent;
    }

    Status answer() {
        const auto whole = server_proof_.receive_from(fd_.get());
        if (!server_proof_.is_pccl())  // whether or not the peer has gone since
            return stranger("it does not use PCCL's protocol, and is another program");
        PCCL_TRY(whole.status());
        if (!*whole) return Status::ok();
        transcript_.server_nonce = server_proof_.message().nonce;
        if (!sys::equal_in_constant_time(server_proof_.message().proof,
                                         prove(args_.secret, kServerLabel, transcript_))) {
            return stranger(
                "it does not prove the secret of the group: it has left the group, or is "
                "another program");
        }
        transcript_.request = outgoing_;
        state_ = HandshakeState::kVerdict;
        const Status sent = send_whole(
            fd_.get(), ClientProof{outgoing_, prove(args_.secret, kClientLabel, transcript_)});
        if (!sent.is_ok()) static_cast<void>(verdict_.receive_from(fd_.get()));
        return sent;
    }

    Status conclude() {
        PCCL_ASSIGN_OR_RETURN(const bool whole, verdict_.receive_from(fd_.get()));
        if (!whole) return Status::ok();
        if (verdict_.message() != ServerVerdict::kAccepted)
            return Status::peer_lost(kNoRank, "it refused the connection");
        state_ = HandshakeState::kDone;
        return Status::ok();
    }

    [[nodiscard]] Status stranger(std::string_view why) const {
        return {args_.of_strangers, std::string(why)};
    }
    [[nodiscard]] std::string peer_name() const {
        return concat(pccl::peer_name(request_.destination), " at ", args_.address.to_string());
    }
    /// Returns the route of a connection between hosts that no process has accepted.
    [[nodiscard]] std::string route() const {
        const bool is_far = args_.address.is_ip() && !args_.address.is_loopback();
        if (!is_far || state_ != HandshakeState::kConnecting || args_.is_one_of_several) return {};
        return concat(outgoing_route(args_.address), kHowToChoose);
    }
    /// Returns the error that blames the peer. A peer publishes its address once it listens there:
    /// a refused connection means that it is gone.
    [[nodiscard]] Status blame(const Status& fault) const {
        const bool is_gone =
            fault.code() == StatusCode::kPeerLost ||
            (fault.code() == StatusCode::kUnavailable && state_ == HandshakeState::kConnecting);
        const std::string message = args_.is_one_of_several
                                        ? fault.message()
                                        : concat(peer_name(), ": ", fault.message(), route());
        if (is_gone) return Status::peer_lost(request_.destination, message);
        if (fault.code() == StatusCode::kTimeout)
            return Status::timeout(message, request_.destination);
        return fault.with_message(message);
    }

    const ConnectArgs& args_;
    LinkRequest request_;
    WireRequest outgoing_{};
    Transcript transcript_;
    HandshakeState state_ = HandshakeState::kConnecting;
    Incoming<ServerProof> server_proof_;
    Incoming<ServerVerdict> verdict_;
    UniqueFd fd_;
    std::size_t times_put_off_ = 0;
};

Result<std::unique_ptr<HandshakeClient>> HandshakeClient::start(
    const ConnectArgs& args, std::span<const Introduction> introductions, SocketWatcher* watcher) {
    std::unique_ptr<HandshakeClient> client(new HandshakeClient(args, watcher));
    for (const Introduction& introduction : introductions) {
        auto handshake = std::make_unique<ClientHandshake>(client->args_, introduction);
        PCCL_TRY(handshake->start());
        if (watcher != nullptr) PCCL_TRY(watcher->watch(handshake->fd()));
        client->handshakes_.push_back(std::move(handshake));
    }
    return client;
}

HandshakeClient::HandshakeClient(const ConnectArgs& args, SocketWatcher* watcher)
    : args_(args), watcher_(watcher) {}

HandshakeClient::~HandshakeClient() { unwatch(); }

void HandshakeClient::unwatch() {
    if (watcher_ == nullptr) return;
    for (const auto& handshake : handshakes_) watcher_->unwatch(handshake->fd());
}

Status HandshakeClient::begin_again(ClientHandshake& handshake) {
    handshake.count_put_off();
    if (watcher_ != nullptr) watcher_->unwatch(handshake.fd());
    PCCL_TRY(handshake.start());
    if (watcher_ != nullptr) PCCL_TRY(watcher_->watch(handshake.fd()));
    return handshake.advance();
}

Result<bool> HandshakeClient::advance() {
    for (const auto& handshake : handshakes_) {
        PCCL_TRY(handshake->advance());
        while (handshake->was_put_off()) PCCL_TRY(begin_again(*handshake));
    }
    return std::ranges::all_of(handshakes_,
                               [](const auto& handshake) { return handshake->is_done(); });
}

void HandshakeClient::await_news(Duration longest) const {
    std::vector<sys::Interest> interests;
    for (const auto& handshake : handshakes_) {
        interests.push_back(handshake->interest());
        if (handshake->must_retry()) longest = std::min(longest, kRetryPause);
    }
    sys::wait_for_any(interests, longest);
}

bool HandshakeClient::is_connected() const {
    return std::ranges::all_of(handshakes_,
                               [](const auto& handshake) { return handshake->is_connected(); });
}

Status HandshakeClient::timeout_error() const {
    for (const auto& handshake : handshakes_)
        if (!handshake->is_done()) return handshake->timeout();
    return Status::internal("a handshake that is done has no timeout");
}

std::vector<UniqueFd> HandshakeClient::take_sockets() {
    unwatch();
    std::vector<UniqueFd> sockets;
    sockets.reserve(handshakes_.size());
    for (const auto& handshake : handshakes_) sockets.push_back(handshake->take_socket());
    handshakes_.clear();
    return sockets;
}

Result<std::vector<UniqueFd>> connect_authenticated(const ConnectArgs& args,
                                                    std::span<const Introduction> introductions,
                                                    Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const auto client, HandshakeClient::start(args, introductions, nullptr));
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(const bool accepted, client->advance());
        if (accepted) return client->take_sockets();
        if (deadline.passed()) return client->timeout_error();
        client->await_news(deadline.slice());
    }
}

Status knock(const sys::Address& address, Deadline deadline) {
    const auto connected = sys::connect_to(address, deadline);
    if (connected.status().code() != StatusCode::kUnavailable) return Status::ok();
    return Status::peer_lost(kNoRank, connected.status().message());
}

std::string outgoing_route(const sys::Address& to) {
    if (!to.is_ip()) return {};
    if (const auto interfaces = sys::list_interfaces(); interfaces.is_ok()) {
        const auto own = std::ranges::find_if(*interfaces, [&to](const sys::Interface& i) {
            return i.address.same_ip(to) && !to.is_link_local();
        });
        if (own != interfaces->end())
            return concat(", which this host has at ", own->name, ", too");
    }
    const auto device = sys::route_device(to);
    return device.is_ok() ? concat(", through ", *device) : std::string();
}

}  // namespace pccl::transport
