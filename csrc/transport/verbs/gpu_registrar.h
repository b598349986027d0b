// SPDX-License-Identifier: Apache-2.0

// Registration of memory of GPUs with RDMA devices.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <pccl/status.h>
#include "csrc/transport/rma/gpu_memory.h"
#include "csrc/transport/verbs/adapter.h"
#include "csrc/transport/verbs/gpu_way.h"

namespace pccl::transport::verbs {

/// Thread-safe.
class GpuRegistrar {
   public:
    /// `ways` are tried in their order.
    explicit GpuRegistrar(std::vector<GpuWay> ways) : ways_(std::move(ways)) {}

    /// Registers a memory of a GPU by the first way that works. kUnsupported, with the reason of
    /// each way, where none does. The log has each way of a device once, and each reason.
    Result<MemoryRegion> add(Adapter& adapter, const Memory& memory);

   private:
    void show_once(const Adapter& adapter, GpuWay way, const Status& status);

    const std::vector<GpuWay> ways_;
    std::mutex mutex_;
    std::set<std::string> shown_;  // guarded by mutex_
};

/// Registers a memory of a GPU by one way. The error has the reason.
[[nodiscard]] Result<MemoryRegion> register_gpu_memory(Adapter& adapter, GpuWay way,
                                                       const Memory& memory);

}  // namespace pccl::transport::verbs
