// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/routed_handshake.h"

#include <utility>

namespace pccl::transport {

Result<std::unique_ptr<RoutedHandshake>> RoutedHandshake::start(
    Target target, std::shared_ptr<ProvenAddresses> proven, SocketWatcher& watcher) {
    std::unique_ptr<RoutedHandshake> handshake(
        new RoutedHandshake(std::move(target), std::move(proven), watcher));
    const PeerRoutes& routes = handshake->target_.routes;
    if (!routes.is_proven && routes.addresses.size() > 1)
        handshake->find_address();
    else
        PCCL_TRY(handshake->connect_at(routes.addresses.front()));
    return handshake;
}

Result<bool> RoutedHandshake::advance() {
    if (client_ == nullptr) {
        PCCL_ASSIGN_OR_RETURN(const auto found, trial_->advance());
        if (!found) return false;
        proven_->add(target_.host, *found);
        PCCL_TRY(connect_at(*found));
    }
    auto accepted = client_->advance();
    if (accepted.is_ok() || !may_be_elsewhere(accepted.status())) return accepted;
    proven_->remove(target_.host, target_.routes.addresses.front());
    client_.reset();
    find_address();
    return advance();
}

Status RoutedHandshake::timeout_error() const {
    return client_ == nullptr ? trial_->timeout_error() : client_->timeout_error();
}

void RoutedHandshake::find_address() {
    trial_ = AddressTrial::start({.addresses = target_.routes.addresses,
                                  .request = target_.request,
                                  .secret = target_.secret},
                                 &watcher_);
}

Status RoutedHandshake::connect_at(const sys::Address& address) {
    const ConnectArgs args{.address = address, .secret = target_.secret, .stream = target_.stream};
    PCCL_ASSIGN_OR_RETURN(client_, HandshakeClient::start(args, target_.introductions, &watcher_));
    return Status::ok();
}

bool RoutedHandshake::may_be_elsewhere(const Status& failure) const {
    return trial_ == nullptr && target_.routes.addresses.size() > 1 &&
           failure.code() == StatusCode::kPeerLost;
}

}  // namespace pccl::transport
