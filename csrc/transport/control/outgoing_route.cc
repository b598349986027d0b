// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/outgoing_route.h"

#include <algorithm>

#include "csrc/base/text/text.h"
#include "csrc/sys/socket/interfaces.h"
#include "csrc/sys/socket/route.h"

namespace pccl::transport {

std::string outgoing_route(const sys::Address& to) {
    if (!to.is_ip()) return {};
    if (const auto interfaces = sys::list_interfaces(); interfaces.is_ok()) {
        const auto own = std::ranges::find_if(*interfaces, [&to](const sys::Interface& i) {
            return i.address.same_ip(to) && !to.is_link_local();
        });
        if (own != interfaces->end())
            return concat(", which this host has at ", own->name, ", too");
    }
    const auto device = sys::route_device(to);
    return device.is_ok() ? concat(", through ", *device) : std::string();
}

}  // namespace pccl::transport
