// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/tcp/path_route.h"

#include "csrc/base/log/log.h"
#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/socket/route.h"
#include "csrc/transport/tcp/path_choice.h"

namespace pccl::transport::tcp {

std::string PathRoute::name() const {
    return concat(interface.name, " ", interface.address.ip_text(), " to ", far.ip_text());
}

std::vector<PathRoute> routes_over(std::span<const sys::Interface> interfaces,
                                   std::span<const sys::Address> addresses, Rank peer) {
    std::vector<PathRoute> routes;
    for (const PathChoice& choice : choose_paths(interfaces, addresses)) {
        const sys::Interface& own = interfaces[choice.interface];
        const sys::Address& far = addresses[choice.address];
        PathRoute route{.interface = own,
                        .far = far.is_link_local() ? far.with_scope(own.index) : far};
        const auto device = sys::route_device(route.far);
        if (device.is_ok() && *device == own.name) {
            routes.push_back(std::move(route));
        } else if (share_subnet(own, far)) {
            route.needs_binding = true;
            routes.push_back(std::move(route));
        } else {
            log(LogLevel::kInfo, "no path to ", peer_name(peer), " from ", route.name(), ": ",
                device.is_ok()
                    ? concat("the routes of this host lead there by ", *device,
                             " (policy routing, ip rule, could lead it by ", own.name, ")")
                    : device.status().message());
        }
    }
    return routes;
}

void PathLog::joined(const PathRoute& route, Rank peer) {
    if (changes(route, peer, PathState::kJoined))
        log(LogLevel::kInfo, "data to ", peer_name(peer), " goes from ", route.name(), ", too");
}

void PathLog::failed(const PathRoute& route, Rank peer, const Status& why) {
    if (changes(route, peer, PathState::kFailed))
        log(LogLevel::kInfo, "no path to ", peer_name(peer), " from ", route.name(), ": ",
            why.message());
}

void PathLog::lost(const PathRoute& route, Rank peer, std::span<const PathRoute* const> others) {
    if (!changes(route, peer, PathState::kLost)) return;
    const auto name = [](const PathRoute* other) { return other->interface.name; };
    log(LogLevel::kWarning, "the path to ", peer_name(peer), " from ", route.name(),
        " carries nothing any more; ",
        others.empty() ? "there is no other one"
                       : concat(some_of(others, kMostPaths, name), " carries its data"));
}

void PathLog::found(const PathRoute& route, Rank peer) {
    if (changes(route, peer, PathState::kJoined))
        log(LogLevel::kWarning, "the path to ", peer_name(peer), " from ", route.name(),
            " carries data again");
}

bool PathLog::changes(const PathRoute& route, Rank peer, PathState state) {
    const std::lock_guard lock(mutex_);
    const auto [known, is_new] =
        states_.try_emplace(concat(route.name(), " of ", peer_name(peer)), state);
    const bool is_change = is_new || known->second != state;
    known->second = state;
    return is_change;
}

}  // namespace pccl::transport::tcp
