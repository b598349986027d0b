// Builds what a process reaches others by: the only place that knows every implementation.
#pragma once

#include <string_view>

#include "csrc/runtime/network.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/transport_flags.h"

namespace pccl::runtime {

/// "shm,tcp": what users ask for by name; empty is all. kInvalidArgument names what there is not,
/// and what there is.
[[nodiscard]] PCCL_API Result<transport::TransportFlags> transports_named(std::string_view names);

/// Control plane and transports, fastest first. kUnavailable when `options.allowed` leaves none
/// that this machine has.
[[nodiscard]] Result<Network> make_network(const NetworkOptions& options,
                                           transport::Waiter& waiter);

}  // namespace pccl::runtime
