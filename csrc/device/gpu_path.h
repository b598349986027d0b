// SPDX-License-Identifier: Apache-2.0

// Memory in which the kernels of a group meet: the peers' GPUs where all of them reach each other,
// otherwise the host's, where all of them map it. GPUs that reach each other without NVLinks have
// the launches of those that meet in the host: reads over PCIe wait.
//
// One pair without peer access lets the kernels of the whole group meet in the host. Messages of
// schedules between the other pairs still go through the GPUs' memory.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/status.h>
#include "csrc/base/rank_bits.h"
#include "csrc/device/device_rendezvous.h"
#include "csrc/kernels/thresholds.h"

namespace pccl::device {

/// Paths that one rank can use: ok, or why not.
struct UsablePaths {
    Status peers{};
    Status host{};
    Status nvlinks{};  // to all peers; considered where `peers` is ok
    RankBits reached =
        0;  // peers whose memory this rank's GPU accesses; considered where it is not
};

/// Returns the paths that these settings allow (DeviceGroupImplOptions).
[[nodiscard]] PCCL_API UsablePaths paths_by(std::optional<bool> peer_access,
                                            std::optional<bool> host_kernels);

/// Returns where kernels on `path` meet, for users: "in host memory".
[[nodiscard]] PCCL_API std::string_view place_of(kernels::GpuPath path);

struct ChosenPath {
    kernels::GpuPath path = kernels::GpuPath::kPeer;
    std::string why{};  // where the path is not kPeer; names a rank
    // By rank, where the path is kHost: the peers with which it exchanges messages of schedules in
    // the GPUs' memory, since both reach each other.
    std::vector<RankBits> linked{};
    [[nodiscard]] bool links_any() const;
};

/// Returns the path for ranks with these paths, indexed by rank; kUnsupported names the obstacles.
[[nodiscard]] Result<ChosenPath> choose_path(std::span<const UsablePaths> ranks);

/// Agrees on choose_path() of all ranks.
[[nodiscard]] Result<ChosenPath> agree_on_path(const DeviceRendezvous& rendezvous,
                                               const UsablePaths& own);

/// Returns ok where NVLinks lead from GPU `device` to `other`.
[[nodiscard]] Status check_nvlink(sys::cuda::Driver& driver, int device, int other);

/// Returns ok where `driver` maps memory files for GPUs.
[[nodiscard]] Status check_host_memory(sys::cuda::Driver& driver);

/// Returns where kernels of ranks on the GPUs of this process would meet, and why, for users; empty
/// where there are no GPUs. `usable` are the settings' paths.
[[nodiscard]] PCCL_API std::string describe_path(sys::cuda::Driver& driver, UsablePaths usable);

}  // namespace pccl::device
