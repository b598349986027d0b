// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/gid_choice.h"

#include <sys/socket.h>

#include <algorithm>
#include <tuple>

#include "csrc/base/text/text.h"

namespace pccl::transport::verbs {
namespace {

using sys::verbs::GidEntry;
using sys::verbs::GidType;

std::span<const std::uint8_t> ip_of(const GidEntry& entry) {
    const std::span<const std::uint8_t> all = entry.gid;
    return entry.is_ipv4() ? all.subspan(12) : all;
}

bool is_in_subnet(std::span<const std::uint8_t> ip, const sys::Interface& interface) {
    const auto own = interface.address.ip_bytes();
    if (own.size() != ip.size()) return false;
    int bits = interface.prefix_bits;
    for (std::size_t i = 0; i < ip.size() && bits > 0; ++i, bits -= 8) {
        const auto mask = static_cast<std::uint8_t>(bits >= 8 ? 0xff : 0xff << (8 - bits));
        if ((ip[i] & mask) != (own[i] & mask)) return false;
    }
    return true;
}

const sys::Interface* interface_of(const GidEntry& entry,
                                   std::span<const sys::Interface> interfaces) {
    const auto found = std::ranges::find_if(interfaces, [&](const sys::Interface& interface) {
        return is_in_subnet(ip_of(entry), interface);
    });
    return found == interfaces.end() ? nullptr : &*found;
}

/// Returns the rank of an entry: the largest is the best.
auto quality_of(const GidEntry& entry, std::span<const sys::Interface> interfaces) {
    const bool has_family = std::ranges::any_of(interfaces, [&](const sys::Interface& interface) {
        return (interface.address.family() == AF_INET) == entry.is_ipv4();
    });
    return std::tuple(entry.type == GidType::kRoceV2, interface_of(entry, interfaces) != nullptr,
                      has_family, !entry.is_link_local(), entry.is_ipv4(), -entry.index);
}

}  // namespace

Result<GidChoice> choose_gid(const sys::verbs::PortInfo& port,
                             std::span<const sys::Interface> interfaces, int index) {
    if (index >= 0) {
        const auto found = std::ranges::find(port.gids, index, &GidEntry::index);
        if (found != port.gids.end()) return GidChoice{*found, "PCCL_IB_GID_INDEX"};
        return Status::unavailable(concat("PCCL_IB_GID_INDEX=", index, ": the port has ",
                                          port.gids.size(), " GIDs, and none of that index"));
    }
    if (port.gids.empty())
        return Status::unavailable(
            port.is_ethernet
                ? "its GID table is empty: the network interface of the port needs an IP address"
                : "its GID table is empty: no subnet manager has configured the port");
    if (!port.is_ethernet) return GidChoice{port.gids.front(), "the first of the port"};
    const GidEntry& best =
        *std::ranges::max_element(port.gids, [&](const GidEntry& a, const GidEntry& b) {
            return quality_of(a, interfaces) < quality_of(b, interfaces);
        });
    const sys::Interface* const interface = interface_of(best, interfaces);
    return GidChoice{best, concat(to_string(best.type), ", ",
                                  interface != nullptr ? "of " + sys::subnet_of(*interface)
                                                       : "in no subnet of this process")};
}

int subnet_bits_of(const GidEntry& entry, std::span<const sys::Interface> networks) {
    if (entry.type == GidType::kInfiniband) return 64;
    if (entry.is_link_local()) return 0;
    const auto ip = ip_of(entry);
    const auto own = std::ranges::find_if(networks, [&](const sys::Interface& network) {
        return std::ranges::equal(network.address.ip_bytes(), ip);
    });
    if (own == networks.end()) return 0;
    return own->prefix_bits + 8 * static_cast<int>(entry.gid.size() - ip.size());
}

}  // namespace pccl::transport::verbs
