// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/port.h"

#include <utility>

namespace pccl::transport::verbs {

std::shared_ptr<Port> renewed(std::shared_ptr<Port> port) {
    if (port->adapter->changes_of(port->info.number) == 0) return port;
    auto info = port->adapter->device().query_port(port->info.number);
    if (!info.is_ok()) return port;
    auto chosen = choose_gid(*info, port->wishes.interfaces, port->wishes.index);
    if (!chosen.is_ok()) return port;
    return std::make_shared<Port>(
        Port{.adapter = port->adapter,
             .info = *std::move(info),
             .gid = chosen->entry,
             .reason = std::move(chosen->reason),
             .wishes = port->wishes,
             .subnet_bits = subnet_bits_of(chosen->entry, port->wishes.networks)});
}

}  // namespace pccl::transport::verbs
