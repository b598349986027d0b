// SPDX-License-Identifier: Apache-2.0

// Collectives by copy engines, which leave all multiprocessors free for other kernels.
//
// Each rank pulls its result block by block, between two small kernels in the same stream. The
// copies read from cached pointers. The second kernel compares these with the addresses that the
// peers send in this launch, and copies blocks itself that were pulled from elsewhere: a cached
// pointer can be wrong, a result cannot.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include <pccl/export.h>
#include "csrc/abi/device_team.h"
#include "csrc/kernels/launch.h"
#include "csrc/schedule/schedule.h"
#include "csrc/sys/cuda/driver.h"

namespace pccl::device {

/// Key of launches that share an entry.
struct PointerCacheKey {
    schedule::CollectiveKind kind{};
    const std::byte* input = nullptr;
    const std::byte* output = nullptr;
    std::size_t bytes = 0;
    bool operator==(const PointerCacheKey&) const = default;
};

class PCCL_API PointerCache {
   public:
    /// Constructs a cache in memory that kernels write and the host reads.
    explicit PointerCache(std::span<abi::CachedPointers, abi::kMostCachedPointers> memory)
        : memory_(memory) {}

    /// Returns the entry for launches with `key`, empty at first. A full cache evicts the entry
    /// that was used longest ago; kernels may still write to that entry.
    abi::CachedPointers& of(const PointerCacheKey& key);
    /// Returns the address of `peer`'s input in that entry; 0 where it is unknown.
    [[nodiscard]] static std::uint64_t input_of(abi::CachedPointers& cached_pointers, int peer);

   private:
    struct Use {
        PointerCacheKey key;
        std::uint64_t last = 0;  // 0: never
    };
    std::span<abi::CachedPointers, abi::kMostCachedPointers> memory_;
    std::array<Use, abi::kMostCachedPointers> uses_{};  // of the entry at the same index
    std::uint64_t now_ = 0;
};

class PCCL_API CopyEngineGather {
   public:
    struct CopyEngineOptions {
        sys::cuda::Driver& driver;
        int device = 0;
        std::span<abi::CachedPointers, abi::kMostCachedPointers> cached_pointers;
        /// Returns whether a copy engine may read there.
        std::function<bool(sys::cuda::DeviceAddress, std::size_t bytes)> is_mapped;
    };
    explicit CopyEngineGather(const CopyEngineOptions& options)
        : options_(options), pointer_cache_(options.cached_pointers) {}
    ~CopyEngineGather();
    CopyEngineGather(const CopyEngineGather&) = delete;
    CopyEngineGather& operator=(const CopyEngineGather&) = delete;

    /// Launches the copies and both kernels in stream order. `own` is the block that this rank
    /// gives itself. `pull` contains everything but its cached pointers and the pulled addresses.
    Status launch(kernels::Pull& pull, schedule::CollectiveKind kind, const std::byte* own,
                  kernels::Stream stream);
    /// Sets the addresses that launch() pulls from, and the entry where its kernels leave pointers
    /// for the next launch.
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
