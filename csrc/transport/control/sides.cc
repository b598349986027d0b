// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/sides.h"

#include <algorithm>

#include "csrc/base/text/text.h"
#include "csrc/sys/socket/route.h"

namespace pccl::transport {
namespace {

using Interfaces = std::span<const sys::Interface>;

Status look_at(std::span<const NetworkDoor> doors, Interfaces interfaces) {
    // A cable without a signal may have been cut at its other end, so it proves nothing.
    const auto is_up = [&](const NetworkDoor& door) {
        return std::ranges::any_of(interfaces, [&door](const sys::Interface& i) {
            return i.index == door.interface.index && i.enabled;
        });
    };
    if (doors.empty() || std::ranges::any_of(doors, is_up)) return Status::ok();
    return Status::unavailable(
        concat("the interface ", doors.front().interface.name, " of this host is switched off"));
}

/// Returns why packets to `address` reach no other host, or not from here; ok where they may.
Status check_route(const sys::Address& address, Interfaces interfaces) {
    const auto own = std::ranges::find_if(interfaces, [&address](const sys::Interface& i) {
        return i.running && i.address.same_ip(address) && !address.is_link_local();
    });
    if (own != interfaces.end())
        return Status::unavailable(
            concat("this host has ", address.ip_text(), " at ", own->name, ", too"));
    return sys::route_source(address).status();
}

/// Returns a peer's address with the scope of this host's interface, which link-local addresses
/// require.
sys::Address scoped(const sys::Address& address, std::span<const NetworkDoor> doors) {
    if (!address.is_link_local() || doors.empty()) return address;
    const auto local = std::ranges::find_if(doors, [&address](const NetworkDoor& door) {
        return door.socket.is_link_local() && door.socket.family() == address.family();
    });
    const NetworkDoor& door = local == doors.end() ? doors.front() : *local;
    return address.with_scope(door.interface.index);
}

}  // namespace

void ProvenAddresses::add(const std::string& host, const sys::Address& address) {
    const std::lock_guard lock(mutex_);
    known_.emplace(host, address.ip_text());
}

void ProvenAddresses::remove(const std::string& host, const sys::Address& address) {
    const std::lock_guard lock(mutex_);
    known_.erase({host, address.ip_text()});
}

bool ProvenAddresses::has(const std::string& host, const sys::Address& address) const {
    const std::lock_guard lock(mutex_);
    return known_.contains({host, address.ip_text()});
}

std::vector<std::string> NetworkSide::addresses() const {
    std::vector<std::string> texts;
    texts.reserve(doors.size());
    for (const NetworkDoor& door : doors) texts.push_back(door.socket.to_string());
    return texts;
}

Result<PeerRoutes> NetworkSide::routes_to(const ControlAddress& peer,
                                          std::span<const std::string> addresses) const {
    const bool is_near = this->is_near(peer);
    std::vector<sys::Interface> interfaces;
    if (!is_near) {
        PCCL_ASSIGN_OR_RETURN(interfaces, sys::list_interfaces());
        PCCL_TRY(look_at(doors, interfaces));
    }
    PeerRoutes routes;
    std::string reasons;
    for (const std::string& text : addresses) {
        PCCL_ASSIGN_OR_RETURN(const sys::Address parsed, sys::Address::parse(text));
        if (!parsed.is_ip()) continue;
        const sys::Address address = scoped(parsed, doors);
        Status route;
        if (!is_near && address.is_loopback())
            route = Status::unavailable(concat("the peer listens at ", text, " of another host"));
        else if (!is_near && addresses.size() > 1)
            route = check_route(address, interfaces);
        if (route.is_ok())
            routes.addresses.push_back(address);
        else
            reasons += concat(reasons.empty() ? "" : ", ", route.message());
    }
    if (routes.addresses.empty())
        return Status::unavailable(
            reasons.empty() ? "it listens at no address that this process can use" : reasons);
    const auto known = std::ranges::find_if(routes.addresses, [&](const sys::Address& address) {
        return proven->has(peer.host, address);
    });
    routes.is_proven = known != routes.addresses.end();
    if (routes.is_proven) std::rotate(routes.addresses.begin(), known, known + 1);
    return routes;
}

}  // namespace pccl::transport
