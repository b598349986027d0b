// SPDX-License-Identifier: Apache-2.0

// Usable port of an RDMA device, with the choices made for it.
#pragma once

#include <memory>
#include <string>

#include "csrc/sys/verbs/device_info.h"
#include "csrc/transport/verbs/adapter.h"
#include "csrc/transport/verbs/gid_choice.h"

namespace pccl::transport::verbs {

struct Port {
    std::shared_ptr<Adapter> adapter;
    sys::verbs::PortInfo info;
    sys::verbs::GidEntry gid;  // used where the link layer is Ethernet, or the peer has another
                               // subnet
    std::string reason;        // why that GID: "RoCE v2, IPv4"
    GidWishes wishes{};        // by which it was chosen
    int subnet_bits = 0;       // of the GID; 0: unknown

    [[nodiscard]] bool is_iwarp() const { return adapter->device().info().is_iwarp; }
    /// Returns "mlx5_0:1".
    [[nodiscard]] std::string name() const {
        return adapter->name() + ":" + std::to_string(info.number);
    }
};

/// Returns the port as it is now, if events may have changed it since it was chosen: with its
/// present GID, LID and MTU. A port without a GID that fits stays as it was.
[[nodiscard]] std::shared_ptr<Port> renewed(std::shared_ptr<Port> port);

}  // namespace pccl::transport::verbs
