// Memory of GPUs that processes of one host share by CUDA IPC.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "csrc/base/status.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/rma.h"
#include "csrc/transport/rma/gpu_stages.h"
#include "csrc/transport/shm/memory_key.h"

namespace pccl::transport::shm {

/// What makes `memory` known to other processes; none where CUDA IPC does not share it. Errors as
/// those of find_gpu_memory().
[[nodiscard]] Result<std::optional<GpuKey>> key_of_gpu(const Memory& memory);

/// Memory of a GPU as this process sees it, for as long as this lives.
struct GpuView {
    sys::cuda::DeviceAddress address = 0;
    int device = -1;                       // whose engines copy from and to it
    std::shared_ptr<const void> opened{};  // null: memory of this process
};

/// What this process has opened of others: each allocation once for each device, and closed when
/// nobody looks at it any more. Safe from every thread.
class GpuMemories {
   public:
    /// Where this process sees the GPU of `key`; another device where it does not.
    [[nodiscard]] Result<int> home_of(const GpuKey& key) const;
    /// For the engines of `device`. kUnsupported where these do not reach it.
    Result<GpuView> open(const GpuKey& key, int device);
    /// Lets kernels of `device` reach memory that this process itself has on `other`. Errors as of
    /// open().
    [[nodiscard]] static Status reach(int device, int other);
    /// For copies between memory of GPUs and of the host; `device` is one that is used anyway.
    Result<std::shared_ptr<GpuStages>> stages(int device);

   private:
    class Opened;
    using Name = std::pair<sys::cuda::IpcHandle, int>;

    std::mutex mutex_;  // guards what follows
    std::map<Name, std::weak_ptr<Opened>> opened_;
    std::shared_ptr<GpuStages> stages_;  // once they are needed
};

}  // namespace pccl::transport::shm
