// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/reverse_route.h"

#include <string>
#include <vector>

#include "csrc/base/config.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/socket/interfaces.h"
#include "csrc/sys/socket/route.h"

namespace pccl::comm {
namespace {

/// Returns the management network's device; empty if none is configured.
std::string management_device() {
    const std::string& spec = process_config().management_ifname;
    const auto interfaces = sys::list_interfaces();
    if (spec.empty() || !interfaces.is_ok()) return {};
    const auto chosen = sys::choose_interface(*interfaces, spec);
    return chosen.is_ok() ? chosen->name : std::string();
}

/// Returns "via 10.78.0.2": the address on which a peer's control plane listens for other hosts.
std::string gateway_to(const transport::PeerAddress& peer) {
    for (const std::string& door : peer.control.doors)
        if (const auto address = sys::Address::parse(door); address.is_ok() && address->is_ip())
            return concat(" via ", address->ip_text());
    return {};
}

}  // namespace

Status check_reverse_route(const runtime::PeerDirectory& directory, Rank source, bool is_fixed) {
    const transport::PeerAddress& peer = directory.endpoint(source).address;
    if (peer.control.host == directory.endpoint(directory.rank()).address.control.host)
        return Status::ok();
    PCCL_ASSIGN_OR_RETURN(const std::string text, peer.first_of(transport::TransportKind::kTcp));
    PCCL_ASSIGN_OR_RETURN(const sys::Address address, sys::Address::parse(text));
    const std::string management = management_device();
    const auto device = sys::route_device(address);
    const bool is_astray =
        device.is_ok() && is_fixed && !management.empty() && *device != management;
    if (device.is_ok() && !is_astray) return Status::ok();
    const std::string found = is_astray ? concat("a route to ", address.ip_text(), " by ", *device,
                                                 ", through which no link leads there")
                                        : device.status().message();
    return Status::unavailable(concat(
        "rank ", directory.rank(), " has ", found, ": the one-way link from rank ", source,
        " needs a way back over the management network: ip route replace ", address.ip_text(),
        gateway_to(peer), management.empty() ? "" : concat(" dev ", management)));
}

}  // namespace pccl::comm
