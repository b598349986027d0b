// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/nvlink/peer_sockets.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "csrc/base/log/limited_log.h"
#include "csrc/base/text/text.h"
#include "csrc/transport/control/handshake.h"
#include "csrc/transport/control/unix_socket.h"
#include "csrc/transport/transport_flags.h"

namespace pccl::transport::nvlink {
namespace {

constexpr Duration kBetweenQuestions = std::chrono::seconds(1);

/// Handshake host of one group, which accepts no links.
class Gatekeeper final : public HandshakeHost {
   public:
    explicit Gatekeeper(const PeerSocketsOptions& options) : options_(options) {}

    std::optional<Secret> secret_of(const GroupId& group) override {
        return group == options_.group ? std::optional(options_.secret) : std::nullopt;
    }
    void refused(std::string_view way, const Status& why) override {
        refusals_.line(LogLevel::kWarning, why.process().host, "refused a connection over ", way,
                       ": ", why.message());
    }

   private:
    const PeerSocketsOptions& options_;
    LimitedLog refusals_{"connections refused"};
};

}  // namespace

PeerSockets::PeerSockets(const PeerSocketsOptions& options)
    : options_(options), sockets_(index(options.size)) {}

Result<std::unique_ptr<PeerSockets>> PeerSockets::listen(const PeerSocketsOptions& options) {
    std::unique_ptr<PeerSockets> sockets(new PeerSockets(options));
    PCCL_ASSIGN_OR_RETURN(const sys::Address name, fresh_unix_address());
    PCCL_ASSIGN_OR_RETURN(
        sockets->server_,
        HandshakeServer::listen(name, {.transport_name = to_string(TransportKind::kNvlink)}));
    return sockets;
}

Status PeerSockets::connect(std::span<const std::string> addresses, Deadline deadline,
                            const Objection& objection) {
    for (Rank peer = 0; peer < options_.rank; ++peer)
        PCCL_TRY(connect_to(peer, addresses[index(peer)], deadline));
    return await_higher(deadline, objection);
}

Status PeerSockets::connect_to(Rank peer, const std::string& address, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const sys::Address where, sys::Address::parse(address));
    const Introduction introduction{.request = {.group = options_.group,
                                                .source = options_.rank,
                                                .destination = peer,
                                                .group_size = options_.size}};
    PCCL_ASSIGN_OR_RETURN(
        auto connected,
        connect_authenticated({.address = where, .secret = options_.secret, .stream = {}},
                              {&introduction, 1}, deadline));
    sockets_[index(peer)] = std::move(connected.front());
    return Status::ok();
}

Rank PeerSockets::first_missing() const {
    Rank peer = options_.rank + 1;
    while (peer < options_.size && sockets_[index(peer)].is_open()) ++peer;
    return peer;
}

Status PeerSockets::await_higher(Deadline deadline, const Objection& objection) {
    Gatekeeper gatekeeper(options_);
    Deadline next_question = Deadline::after(kBetweenQuestions);
    for (Rank missing = first_missing(); missing < options_.size; missing = first_missing()) {
        if (deadline.passed())
            return Status::timeout(concat("rank ", missing, " has not connected its GPU"), missing);
        if (objection && next_question.passed()) {
            PCCL_TRY(objection());
            next_question = Deadline::after(kBetweenQuestions);
        }
        const sys::Interest arrivals{.fd = server_->poll_fd(), .input = true};
        const Duration slice = std::chrono::milliseconds(100);
        sys::wait_for_any({&arrivals, 1}, std::min<Duration>(slice, deadline.remaining()));
        server_->advance(gatekeeper, [this](UniqueFd socket, const Introduction& introduction) {
            welcome(std::move(socket), introduction.request);
        });
    }
    return Status::ok();
}

void PeerSockets::welcome(UniqueFd socket, const LinkRequest& request) {
    const bool is_expected = request.destination == options_.rank &&
                             request.source > options_.rank && request.source < options_.size &&
                             !sockets_[index(request.source)].is_open();
    if (is_expected) sockets_[index(request.source)] = std::move(socket);
}

}  // namespace pccl::transport::nvlink
