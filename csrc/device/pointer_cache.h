// SPDX-License-Identifier: Apache-2.0

// Cache of peer pointers: the addresses of the peers' inputs in the last launch of the same key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <pccl/export.h>
#include "csrc/abi/device_team.h"
#include "csrc/schedule/schedule.h"

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

}  // namespace pccl::device
