// SPDX-License-Identifier: Apache-2.0

// Pinned host memory between processors and the copy engines of GPUs, in pieces of one length.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <pccl/status.h>
#include "csrc/sys/cuda/driver.h"

namespace pccl::transport {

class GpuStages;

/// One piece, lent until this object ends.
class PCCL_API GpuStage {
   public:
    GpuStage(std::shared_ptr<GpuStages> stages, std::span<std::byte> bytes)
        : stages_(std::move(stages)), bytes_(bytes) {}
    ~GpuStage();
    GpuStage(const GpuStage&) = delete;
    GpuStage& operator=(const GpuStage&) = delete;

    [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

   private:
    const std::shared_ptr<GpuStages> stages_;
    const std::span<std::byte> bytes_;
};

/// Pool of pieces, allocated on demand, and kept. Thread-safe.
class PCCL_API GpuStages : public std::enable_shared_from_this<GpuStages> {
   public:
    struct StageExtent {
        std::size_t bytes = 0;  // of each
        std::size_t most = 0;
    };

    /// Creates a pool that all devices can access; `device` is one that this process uses anyway.
    static std::shared_ptr<GpuStages> create(sys::cuda::Driver& driver, int device,
                                             const StageExtent& extent);
    ~GpuStages();
    GpuStages(const GpuStages&) = delete;
    GpuStages& operator=(const GpuStages&) = delete;

    [[nodiscard]] std::size_t bytes() const { return extent_.bytes; }
    /// Returns null while all are lent.
    Result<std::unique_ptr<GpuStage>> take();

   private:
    friend class GpuStage;
    GpuStages(sys::cuda::Driver& driver, int device, const StageExtent& extent)
        : driver_(driver), device_(device), extent_(extent) {}
    void give_back(std::span<std::byte> bytes);

    sys::cuda::Driver& driver_;
    const int device_;
    const StageExtent extent_;
    std::mutex mutex_;                        // guards the members below
    std::vector<std::span<std::byte>> free_;  // allocated, not lent
    std::size_t allocated_ = 0;
};

}  // namespace pccl::transport
