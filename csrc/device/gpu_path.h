// SPDX-License-Identifier: Apache-2.0

// Memory in which the kernels of a group meet: the peers' GPUs where all of them reach each other,
// otherwise the host's, where all of them map it.
//
// Today one pair without peer access sends the whole group through the host. A group that uses both
// needs a path for each pair in abi::DeviceTeam, and schedules that know it.
#pragma once

#include <span>
#include <string>

#include <pccl/status.h>
#include "csrc/device/device_rendezvous.h"
#include "csrc/kernels/thresholds.h"

namespace pccl::device {

/// Paths that one rank can use: ok, or why not.
struct UsablePaths {
    Status peers{};
    Status host{};
};

struct ChosenPath {
    kernels::GpuPath path = kernels::GpuPath::kPeer;
    std::string why{};  // the path is not kPeer; names a rank
};

/// Returns the path for ranks with these paths, indexed by rank; kUnsupported names the obstacles.
[[nodiscard]] Result<ChosenPath> choose_path(std::span<const UsablePaths> ranks);

/// Agrees on choose_path() of all ranks.
[[nodiscard]] Result<ChosenPath> agree_on_path(const DeviceRendezvous& rendezvous,
                                               const UsablePaths& own);

/// Returns ok where `driver` maps memory files for GPUs.
[[nodiscard]] Status check_host_memory(sys::cuda::Driver& driver);

}  // namespace pccl::device
