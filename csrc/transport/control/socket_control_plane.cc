// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/socket_control_plane.h"

#include <algorithm>
#include <span>
#include <type_traits>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/sys/host.h"
#include "csrc/transport/control/address_trial.h"
#include "csrc/transport/control/handshake.h"
#include "csrc/transport/control/inquiry.h"
#include "csrc/transport/control/unix_socket.h"

namespace pccl::transport {

namespace {

/// Finds the address at which a peer proves itself, on one side of the network.
Result<sys::Address> proven_door(const NetworkSide& side, const ControlAddress& peer,
                                 std::span<const std::string> doors,
                                 const AddressTrialOptions& trial, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const PeerRoutes routes, side.routes_to(peer, doors));
    if (routes.is_proven || routes.addresses.size() == 1) return routes.addresses.front();
    AddressTrialOptions options = trial;
    options.addresses = routes.addresses;
    PCCL_ASSIGN_OR_RETURN(const sys::Address found, find_address(options, deadline));
    side.proven->add(peer.host, found);
    return found;
}

bool leads_nowhere(const Status& status) {
    return status.code() == StatusCode::kPeerLost || status.code() == StatusCode::kUnavailable;
}

/// Examines the interfaces if there are several candidates.
void examine_several(std::vector<sys::Interface>& interfaces) {
    const auto counts = [](const sys::Interface& i) { return i.running && !i.loopback; };
    if (std::ranges::count_if(interfaces, counts) > 1) sys::examine_interfaces(interfaces);
}

}  // namespace

Result<std::unique_ptr<SocketControlPlane>> SocketControlPlane::create(
    const ControlOptions& options) {
    std::unique_ptr<SocketControlPlane> control(new SocketControlPlane);
    PCCL_ASSIGN_OR_RETURN(control->address_.host, sys::host_identity());
    PCCL_ASSIGN_OR_RETURN(control->address_.kernel, sys::kernel_identity());
    control->address_.user = sys::user_identity();
    if (options.within_host) control->within_host_ = control->listen_within_host(options);
    if (options.between_hosts) control->between_hosts_ = control->listen_between_hosts(options);
    return control;
}

Result<HostSide> SocketControlPlane::listen_within_host(const ControlOptions& options) {
    PCCL_ASSIGN_OR_RETURN(const sys::Address name, fresh_unix_address());
    PCCL_ASSIGN_OR_RETURN(
        const sys::Address socket,
        listen(name, {.transport_name = "shm", .onlookers = options.job.value_or(kNoJobSecret)}));
    HostSide side{.process = address_, .socket = socket};
    address_.doors.push_back(socket.to_string());
    return side;
}

/// Listens on the network. The control addresses are on the management network, which no switch
/// changes, where there is one.
Result<NetworkSide> SocketControlPlane::listen_between_hosts(const ControlOptions& options) {
    PCCL_ASSIGN_OR_RETURN(NetworkSide links, listen_at(options.interface, options));
    management_ = links;
    if (!options.management.empty()) {
        management_ = listen_at(options.management, options);
        PCCL_TRY(management_.status());
    }
    for (std::string& door : management_->addresses()) address_.doors.push_back(std::move(door));
    return links;
}

Result<NetworkSide> SocketControlPlane::listen_at(const std::string& interface,
                                                  const ControlOptions& options) {
    PCCL_ASSIGN_OR_RETURN(auto interfaces, sys::list_interfaces());
    examine_several(interfaces);
    PCCL_ASSIGN_OR_RETURN(const auto candidates, sys::candidate_interfaces(interfaces, interface));
    NetworkSide side{.process = address_};
    side.process.doors.clear();
    Status refusal;
    for (const sys::Interface& candidate : candidates) {
        const auto socket =
            listen(candidate.address,
                   {.transport_name = "tcp", .stream = options.stream, .onlookers = options.job});
        // A recently added IPv6 address may not accept listeners yet.
        if (socket.is_ok())
            side.doors.push_back({.socket = *socket, .interface = candidate});
        else if (refusal.is_ok())
            refusal = socket.status();
    }
    if (side.doors.empty()) return refusal;
    return side;
}

Result<sys::Address> SocketControlPlane::listen(const sys::Address& address,
                                                const HandshakeServerOptions& options) {
    PCCL_ASSIGN_OR_RETURN(auto server, HandshakeServer::listen(address, options));
    const sys::Address bound = server->address();
    servers_.push_back(std::move(server));
    return bound;
}

std::optional<sys::Address> SocketControlPlane::near_door(const ControlAddress& peer) const {
    if (!within_host_.is_ok() || !may_share_memory(address_, peer).is_ok()) return std::nullopt;
    for (const std::string& door : peer.doors)
        if (const auto address = sys::Address::parse(door);
            address.is_ok() && address->family() == AF_UNIX)
            return *address;
    return std::nullopt;
}

template <typename Act>
auto SocketControlPlane::at_door(const Errand& errand, const Act& act) const
    -> decltype(act(std::declval<ConnectArgs>())) {
    const auto status_of = [](const auto& outcome) -> Status {
        if constexpr (std::is_same_v<std::decay_t<decltype(outcome)>, Status>)
            return outcome;
        else
            return outcome.status();
    };
    std::optional<decltype(act(std::declval<ConnectArgs>()))> near;
    if (const auto door = near_door(errand.peer)) {
        near = act(ConnectArgs{.address = *door, .secret = errand.secret});
        if (!management_.is_ok() || !leads_nowhere(status_of(*near))) return *std::move(near);
    }
    if (!management_.is_ok())
        return Status::unavailable("it listens at no address that this process can use");
    const auto door =
        proven_door(*management_, errand.peer, errand.peer.doors,
                    {.request = errand.request, .secret = errand.secret}, errand.deadline);
    if (!door.is_ok()) return near ? *std::move(near) : door.status();
    auto far = act(ConnectArgs{.address = *door, .secret = errand.secret});
    if (status_of(far).is_ok()) return far;
    management_->proven->remove(errand.peer.host, *door);
    return near ? *std::move(near) : std::move(far);
}

Result<std::string> SocketControlPlane::query(const ControlAddress& peer,
                                              const LinkRequest& request, const Secret& secret,
                                              Deadline deadline) {
    return at_door({peer, request, secret, deadline}, [&](const ConnectArgs& args) {
        return inquire(args, {.request = request, .service = Service::kQuery}, deadline);
    });
}

Status SocketControlPlane::notify(const ControlAddress& peer, const LinkRequest& request,
                                  const Secret& secret, const Status& reason, Deadline deadline) {
    const Introduction introduction = notice_for(request, reason);
    return at_door({peer, request, secret, deadline}, [&](const ConnectArgs& args) {
        return connect_authenticated(args, {&introduction, 1}, deadline).status();
    });
}

Status SocketControlPlane::probe(const ControlAddress& peer, Deadline deadline) {
    std::vector<sys::Address> doors;
    if (const auto near = near_door(peer)) doors.push_back(*near);
    if (management_.is_ok())
        if (const auto routes = management_->routes_to(peer, peer.doors); routes.is_ok())
            doors.insert(doors.end(), routes->addresses.begin(), routes->addresses.end());
    Status lost;
    for (const sys::Address& door : doors) {
        // An address that drops the packets must not use all of the time.
        lost = knock(door, Deadline::after(deadline.remaining() / 2));
        if (lost.is_ok()) return lost;
    }
    return lost;
}

Result<std::string> SocketControlPlane::find_address(const ControlAddress& peer,
                                                     const std::vector<std::string>& addresses,
                                                     const LinkRequest& request,
                                                     const Secret& secret, Deadline deadline) {
    PCCL_TRY(between_hosts_.status());
    PCCL_ASSIGN_OR_RETURN(const sys::Address found,
                          proven_door(*between_hosts_, peer, addresses,
                                      {.request = request, .secret = secret}, deadline));
    return found.to_string();
}

std::vector<int> SocketControlPlane::poll_fds() const {
    std::vector<int> fds;
    fds.reserve(servers_.size());
    for (const auto& server : servers_) fds.push_back(server->poll_fd());
    return fds;
}

void SocketControlPlane::advance(ControlHost& host) {
    for (const auto& server : servers_)
        server->advance(host, [&](UniqueFd socket, const Introduction& introduction) {
            if (is_trial(introduction)) return;
            if (requests_echoes(introduction)) return echoes_.accept(std::move(socket));
            Arrival arrival{.socket = std::move(socket),
                            .introduction = introduction,
                            .shortage = server->shortage()};
            if (const auto text = take_up(arrival, host)) answer(arrival.socket.get(), *text);
        });
}

}  // namespace pccl::transport
