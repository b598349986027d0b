#include "csrc/transport/control/socket_control_plane.h"

#include <utility>

#include "csrc/base/text.h"
#include "csrc/sys/host.h"
#include "csrc/transport/control/handshake.h"
#include "csrc/transport/control/inquiry.h"
#include "csrc/transport/control/unix_socket.h"

namespace pccl::transport {
Result<std::unique_ptr<SocketControlPlane>> SocketControlPlane::create(
    const ControlOptions& options) {
    std::unique_ptr<SocketControlPlane> control(new SocketControlPlane);
    PCCL_ASSIGN_OR_RETURN(control->address_.host, sys::host_identity());
    if (options.within_host) control->within_host_ = control->listen_within_host(options);
    if (options.between_hosts) control->between_hosts_ = control->listen_between_hosts(options);
    return control;
}

Result<HostSide> SocketControlPlane::listen_within_host(const ControlOptions& options) {
    PCCL_ASSIGN_OR_RETURN(const sys::Address name, fresh_unix_address());
    PCCL_ASSIGN_OR_RETURN(
        const sys::Address socket,
        listen(name, {.way = "shm", .onlookers = options.job.value_or(kNoJobSecret)}));
    add_door(socket);
    return HostSide{.host = address_.host, .socket = socket};
}

/// The door is on the network that no switch changes, where there is one of its own.
Result<NetworkSide> SocketControlPlane::listen_between_hosts(const ControlOptions& options) {
    PCCL_ASSIGN_OR_RETURN(const NetworkSide links, listen_at(options.interface, options));
    management_ = links;
    if (!options.management.empty()) {
        management_ = listen_at(options.management, options);
        PCCL_TRY(management_.status());
    }
    add_door(management_->socket);
    return links;
}

Result<NetworkSide> SocketControlPlane::listen_at(const std::string& interface,
                                                  const ControlOptions& options) {
    PCCL_ASSIGN_OR_RETURN(const auto interfaces, sys::list_interfaces());
    PCCL_ASSIGN_OR_RETURN(const auto chosen, sys::choose_interface(interfaces, interface));
    PCCL_ASSIGN_OR_RETURN(
        const sys::Address socket,
        listen(chosen.address, {.way = "tcp", .stream = options.stream, .onlookers = options.job}));
    return NetworkSide{.host = address_.host, .socket = socket, .interface = chosen};
}

Result<sys::Address> SocketControlPlane::listen(const sys::Address& address,
                                                const HandshakeServer::Options& options) {
    PCCL_ASSIGN_OR_RETURN(auto server, HandshakeServer::listen(address, options));
    const sys::Address bound = server->address();
    servers_.push_back(std::move(server));
    return bound;
}

Result<sys::Address> SocketControlPlane::way_to(const ControlAddress& peer) const {
    Status reason = Status::unavailable("it listens at no door that this process knows");
    for (const std::string& door : peer.doors) {
        PCCL_ASSIGN_OR_RETURN(const sys::Address address, sys::Address::parse(door));
        if (address.family() == AF_UNIX) {
            if (within_host_.is_ok() && peer.host == address_.host) return address;
        } else if (management_.is_ok()) {
            reason = management_->reaches(peer.host, address);
            if (reason.is_ok()) return management_->from_here(address);
        }
    }
    return reason;
}

Result<std::string> SocketControlPlane::query(const ControlAddress& peer,
                                              const LinkRequest& request, const Secret& secret,
                                              Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const sys::Address door, way_to(peer));
    return inquire({.address = door, .secret = secret, .stream = {}},
                   {.request = request, .service = Service::kQuery}, deadline);
}

Status SocketControlPlane::notify(const ControlAddress& peer, const LinkRequest& request,
                                  const Secret& secret, const Status& reason, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const sys::Address door, way_to(peer));
    const Introduction introduction = notice_for(request, reason);
    return connect_authenticated({.address = door, .secret = secret, .stream = {}},
                                 {&introduction, 1}, deadline)
        .status();
}

Status SocketControlPlane::probe(const ControlAddress& peer, Deadline deadline) {
    const auto door = way_to(peer);
    return door.is_ok() ? knock(*door, deadline) : Status::ok();
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
            if (asks_for_echoes(introduction)) return echoes_.take(std::move(socket));
            Arrival arrival{.socket = std::move(socket),
                            .introduction = introduction,
                            .shortage = server->shortage()};
            if (const auto text = take_up(arrival, host)) answer(arrival.socket.get(), *text);
        });
}

}  // namespace pccl::transport
