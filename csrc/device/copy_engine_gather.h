// Collectives that copy engines do, while all multiprocessors are free for others.
//
// Each rank pulls what it gets, block by block, between two small kernels in the same stream. A
// copy's addresses are cached pointers. The second kernel compares them with what the peers
// send in this very launch, and does itself what was pulled from elsewhere: a cached pointer can be
// wrong, a result cannot.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "csrc/device/pointer_cache.h"
#include "csrc/kernels/launch.h"
#include "csrc/sys/cuda/driver.h"

namespace pccl::device {

class PCCL_API CopyEngineGather {
   public:
    struct CopyEngineOptions {
        sys::cuda::Driver& driver;
        int device = 0;
        std::span<abi::CachedPointers, abi::kMostCachedPointers> cached_pointers;
        /// Whether a copy engine may read there.
        std::function<bool(sys::cuda::DeviceAddress, std::size_t bytes)> is_mapped;
    };
    explicit CopyEngineGather(const CopyEngineOptions& options)
        : options_(options), pointer_cache_(options.cached_pointers) {}
    ~CopyEngineGather();
    CopyEngineGather(const CopyEngineGather&) = delete;
    CopyEngineGather& operator=(const CopyEngineGather&) = delete;

    /// In stream order. `own` is the block that this rank gives itself; `pull` says all but what
    /// is pulled and the cached pointers.
    Status launch(kernels::Pull& pull, schedule::CollectiveKind kind, const std::byte* own,
                  kernels::Stream stream);
    /// What launch() pulls from where, and where its kernels leave pointers for the next one.
    void use_cached_pointers(kernels::Pull& pull, schedule::CollectiveKind kind,
                             const std::byte* own);

   private:
    Status copy(const kernels::Pull& pull, int peer, kernels::Stream stream);
    Status copy_own(const kernels::Pull& pull, kernels::Stream stream);

    const CopyEngineOptions options_;
    PointerCache pointer_cache_;
    std::optional<kernels::Stream> side_;  // for the own block
};

}  // namespace pccl::device
