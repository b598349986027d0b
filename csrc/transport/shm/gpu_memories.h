// SPDX-License-Identifier: Apache-2.0

// Memory of GPUs that processes of one host share by CUDA IPC.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <pccl/status.h>
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/rma.h"
#include "csrc/transport/rma/gpu_stages.h"
#include "csrc/transport/shm/memory_key.h"

namespace pccl::transport::shm {

/// Returns the key by which other processes open `memory`; none where CUDA IPC does not share it.
/// Errors are those of find_gpu_memory().
[[nodiscard]] Result<std::optional<GpuKey>> key_of_gpu(const Memory& memory);

/// Memory of a GPU as this process maps it, while this object lives.
struct GpuView {
    sys::cuda::DeviceAddress address = 0;
    int device = -1;                       // GPU whose copy engines access it
    std::shared_ptr<const void> opened{};  // null: memory of this process
};

/// Memory that this process has opened of others: each allocation once for each device, and closed
/// with its last view. Thread-safe.
class GpuMemories {
   public:
    /// Returns this process's number of the GPU of `key`; another device where the GPU is not
    /// visible.
    [[nodiscard]] Result<int> home_of(const GpuKey& key) const;
    /// Opens memory for the copy engines of `device`. kUnsupported where these do not reach it.
    Result<GpuView> open(const GpuKey& key, int device);
    /// Lets kernels of `device` access memory that this process itself has on `other`. Errors as of
    /// open().
    [[nodiscard]] static Status reach(int device, int other);
    /// Returns stages for copies between memory of GPUs and of the host; `device` is one that is
    /// used anyway.
    Result<std::shared_ptr<GpuStages>> stages(int device);

   private:
    class Opened;
    using Name = std::pair<sys::cuda::IpcHandle, int>;

    std::mutex mutex_;  // guards the members below
    std::map<Name, std::weak_ptr<Opened>> opened_;
    std::shared_ptr<GpuStages> stages_;  // created on first use
};

}  // namespace pccl::transport::shm
