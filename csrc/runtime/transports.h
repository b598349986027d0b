// Builds the transports of a process: the only place that knows every implementation.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "csrc/transport/doorbell.h"
#include "csrc/transport/transport.h"

namespace pccl::runtime {

/// "shm,tcp": what users ask for by name; empty is all. kInvalidArgument names what there is not,
/// and what there is.
[[nodiscard]] PCCL_API Result<transport::TransportFlags> transports_named(std::string_view names);

/// In order of preference, fastest first. kUnavailable when `allowed` leaves none that this machine
/// has.
[[nodiscard]] Result<std::vector<std::unique_ptr<transport::Transport>>> make_transports(
    transport::TransportFlags allowed, transport::Waiter& waiter);

}  // namespace pccl::runtime
