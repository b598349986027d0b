// SPDX-License-Identifier: Apache-2.0

// Memory in which the kernels of a group meet: the peers' GPUs where all of them reach each other,
// otherwise the host's, where all of them map it.
//
// Today one pair without peer access sends the whole group through the host. A group that uses both
// needs a path for each pair in abi::DeviceTeam, and schedules that know it.
#pragma once

#include <optional>
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

/// Returns the paths that these settings allow (DeviceGroupImplOptions).
[[nodiscard]] PCCL_API UsablePaths paths_by(std::optional<bool> peer_access,
                                            std::optional<bool> host_kernels);

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

/// Returns where kernels of ranks on the GPUs of this process would meet, and why, for users; empty
/// where there are no GPUs. `usable` are the settings' paths.
[[nodiscard]] PCCL_API std::string describe_path(sys::cuda::Driver& driver, UsablePaths usable);

}  // namespace pccl::device
