// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/connector.h"

#include <algorithm>
#include <span>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/crypto/sha256.h"
#include "csrc/transport/transport.h"
#include "plugins/nccl/data_socket.h"
#include "plugins/nccl/nccl_log.h"

namespace pccl::nccl {
namespace {

// A path that needs longer than this after another one is broken.
constexpr Duration kGrace = std::chrono::seconds(3);
// The kernel of the peer answers at once; its process may still do something else.
constexpr int kTimeoutFactor = 20;

sys::Address target_of(const sys::Address& address, const sys::Interface& from) {
    return address.is_link_local() ? address.with_scope(from.index) : address;
}

}  // namespace

Connector::Connector(const Handle& handle)
    : peer_{.rank = handle.rank},
      addresses_(handle.addresses),
      deadline_(Deadline::after(process_config().connect_timeout)) {}

Result<std::unique_ptr<Connector>> Connector::start(const Handle& handle,
                                                    const NetworkDevice& device, const Self& self) {
    std::unique_ptr<Connector> connector(new Connector(handle));
    PCCL_TRY(connector->open(handle, device, self));
    return connector;
}

Status Connector::open(const Handle& handle, const NetworkDevice& device, const Self& self) {
    PCCL_ASSIGN_OR_RETURN(const transport::Secret secret, handle.secret());
    SocketRole role{.host = HostName::of(self.host)};
    PCCL_TRY(sys::fill_random(role.communicator));
    for (const PathChoice& choice : choose_paths(device, addresses_)) {
        const sys::Interface& own = device.interfaces[choice.interface];
        const sys::Address far = target_of(addresses_[choice.address], own);
        role.interface = InterfaceName::of(own.name);
        role.path = static_cast<std::uint8_t>(attempts_.size());
        const transport::Introduction introduction{
            .request = {.group = handle.id, .source = self.rank, .destination = handle.rank},
            .transport = static_cast<std::uint8_t>(transport::TransportKind::kTcp),
            .purpose = transport::purpose_of(role)};
        Attempt attempt{
            .path = {.ends = {.near_interface = own.name, .near = own.address, .far = far}}};
        auto client = transport::HandshakeClient::start({.address = far,
                                                         .secret = secret,
                                                         .stream = kDataStream,
                                                         .source = own.address,
                                                         .is_one_of_several = true},
                                                        {&introduction, 1}, nullptr);
        if (client.is_ok())
            attempt.client = std::move(*client);
        else
            attempt.path.lose(client.status());
        attempts_.push_back(std::move(attempt));
    }
    if (!attempts_.empty()) return Status::ok();
    return Status::unavailable(
        concat("no interface of ", device.name, " can reach ",
               some_of(addresses_, kMostPaths, [](const auto& each) { return each.ip_text(); }),
               ": PCCL_SOCKET_IFNAME or NCCL_SOCKET_IFNAME, at both ends, names those to use"));
}

void Connector::advance(Attempt& attempt) {
    const auto accepted = attempt.client->advance();
    if (accepted.is_ok() && !*accepted) return;
    if (accepted.is_ok())
        attempt.path.socket = std::move(attempt.client->take_sockets().front());
    else
        attempt.path.lose(accepted.status());
    attempt.client.reset();
}

bool Connector::is_any_connected() const {
    return std::ranges::any_of(attempts_, [](const Attempt& attempt) {
        return attempt.client != nullptr && attempt.client->is_connected();
    });
}

Result<bool> Connector::choose() {
    for (Attempt& attempt : attempts_)
        if (attempt.client != nullptr) advance(attempt);
    const bool any_there = std::ranges::any_of(
        attempts_, [](const Attempt& attempt) { return attempt.path.is_alive(); });
    const bool any_open = std::ranges::any_of(
        attempts_, [](const Attempt& attempt) { return attempt.client != nullptr; });
    if (any_there && !grace_) grace_ = Deadline::after(kGrace);
    if (any_there) return !any_open || grace_->passed();
    if (!any_open) return no_path();
    if (!deadline_.passed()) return false;
    if (is_any_connected() && !std::exchange(is_patient_, true)) {
        deadline_ = Deadline::after(kTimeoutFactor * process_config().connect_timeout);
        return false;
    }
    return no_path();
}

Status Connector::no_path() {
    std::vector<Path> paths;
    for (Attempt& attempt : attempts_) {
        if (attempt.client) attempt.path.lose(attempt.client->timeout_error());
        paths.push_back(std::move(attempt.path));
    }
    return Status::peer_lost(
        peer_.rank, concat("cannot connect to ", peer_.name(), " (", faults_of(paths), ")"));
}

void Connector::send_begin() {
    Begin begin;
    for (std::size_t i = 0; i < attempts_.size(); ++i)
        if (attempts_[i].path.is_alive()) begin.paths |= 1U << i;
    deadline_ = Deadline::after(kTimeoutFactor * process_config().connect_timeout);
    for (Attempt& attempt : attempts_) {
        Path& path = attempt.path;
        if (attempt.client) path.lose(attempt.client->timeout_error());
        attempt.client.reset();
        attempt.is_chosen = path.is_alive();
        if (!attempt.is_chosen) continue;
        probe_data_socket(path.socket.get());
        const auto sent = sys::send_some(path.socket.get(), std::as_bytes(std::span(&begin, 1)));
        if (!sent.is_ok()) path.lose(sent.status());
    }
    has_begun_ = true;
}

void Connector::read_identity(Attempt& attempt) {
    const auto whole = std::as_writable_bytes(std::span(&attempt.identity, 1));
    while (attempt.received < whole.size()) {
        const auto got =
            sys::receive_some(attempt.path.socket.get(), whole.subspan(attempt.received));
        if (!got.is_ok()) attempt.path.lose(got.status());
        if (!got.is_ok() || *got == 0) return;
        attempt.received += *got;
    }
}

Result<const Identity*> Connector::read_identity() {
    const Identity* identity = nullptr;
    bool any_left = false;
    for (Attempt& attempt : attempts_) {
        if (attempt.path.is_alive()) read_identity(attempt);
        any_left = any_left || attempt.path.is_alive();
        if (attempt.received == sizeof(Identity)) identity = &attempt.identity;
    }
    if (!any_left) return no_path();
    if (identity != nullptr && identity->magic != Identity::kMagic)
        return Status::mismatch(peer_.rank,
                                concat("cannot connect to ", peer_.name(),
                                       ": it answers with bytes that are no description of it"));
    if (identity == nullptr && deadline_.passed())
        return Status::peer_lost(peer_.rank,
                                 concat("cannot connect to ", peer_.name(),
                                        ": its process does not accept the connection"));
    return identity;
}

Result<std::unique_ptr<SendComm>> Connector::advance() {
    if (!has_begun_) {
        PCCL_ASSIGN_OR_RETURN(const bool is_chosen, choose());
        if (!is_chosen) return std::unique_ptr<SendComm>();
        send_begin();
    }
    PCCL_ASSIGN_OR_RETURN(const Identity* const identity, read_identity());
    return identity == nullptr ? std::unique_ptr<SendComm>() : finish(*identity);
}

std::unique_ptr<SendComm> Connector::finish(const Identity& identity) {
    peer_ = {.rank = identity.rank, .host = identity.host.get()};
    std::vector<Path> paths;
    for (Attempt& attempt : attempts_) {
        Path& path = attempt.path;
        if (!path.is_alive()) log_left_out(path, peer_);
        if (!attempt.is_chosen) continue;
        const auto far = std::ranges::find_if(addresses_, [&](const sys::Address& address) {
            return address.same_ip(path.ends.far);
        });
        const auto index = static_cast<std::size_t>(far - addresses_.begin());
        if (index < identity.interfaces.size())
            path.ends.far_interface = identity.interfaces[index].get();
        path.setup_bytes = sizeof(Identity) - attempt.received;
        paths.push_back(std::move(path));
    }
    return std::make_unique<SendComm>(Paths(peer_, std::move(paths)),
                                      process_config().peer_timeout);
}

}  // namespace pccl::nccl
