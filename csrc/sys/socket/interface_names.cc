// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/socket/interface_names.h"

#include <vector>

#include "csrc/sys/socket/interfaces.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::sys {
namespace {

std::string interface_with(const Address& address) {
    const auto interfaces = list_interfaces();
    if (!interfaces.is_ok()) return {};
    for (const Interface& interface : *interfaces)
        if (interface.address.same_ip(address)) return interface.name;
    return {};
}

}  // namespace

std::string InterfaceNames::name_of(int socket) {
    const Result<Address> local = local_address(socket);
    if (!local.is_ok() || !local->is_ip()) return {};
    const auto [known, is_new] = names_.try_emplace(local->ip_text());
    if (is_new) known->second = interface_with(*local);
    return known->second;
}

}  // namespace pccl::sys
