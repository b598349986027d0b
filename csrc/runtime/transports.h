// SPDX-License-Identifier: Apache-2.0

// Construction of a process's network. No other file depends on all transports.
#pragma once

#include <string_view>

#include "csrc/runtime/network.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/transport_flags.h"

namespace pccl::runtime {

/// Parses a list such as "shm,tcp"; empty: all. Returns kInvalidArgument with the unknown name and
/// the valid ones.
[[nodiscard]] PCCL_API Result<transport::TransportFlags> transports_named(std::string_view names);

/// Makes the control plane and the transports, fastest first. Returns kUnavailable when this
/// machine has none of `options.allowed`.
[[nodiscard]] Result<Network> make_network(const NetworkOptions& options,
                                           transport::Waiter& waiter);

}  // namespace pccl::runtime
