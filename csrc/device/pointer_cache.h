// A cache of peer pointers: where this rank saw its peers' inputs when a launch like this one last
// ran.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "csrc/abi/device_team.h"
#include "csrc/base/export.h"
#include "csrc/schedule/schedule.h"

namespace pccl::device {

/// What makes launches alike.
struct PointerCacheKey {
    schedule::CollectiveKind kind{};
    const std::byte* input = nullptr;
    const std::byte* output = nullptr;
    std::size_t bytes = 0;
    bool operator==(const PointerCacheKey&) const = default;
};

class PCCL_API PointerCache {
   public:
    /// Of memory that kernels write and the host reads.
    explicit PointerCache(std::span<abi::CachedPointers, abi::kMostCachedPointers> memory)
        : memory_(memory) {}

    /// The entry for launches like `key`, empty at first. Where there are too many kinds of them,
    /// it takes the place of the one that was used longest ago; kernels may still write that one's.
    abi::CachedPointers& of(const PointerCacheKey& key);
    /// Where `peer`'s input was by that entry; 0 where it is not known.
    [[nodiscard]] static std::uint64_t input_of(abi::CachedPointers& cached_pointers, int peer);

   private:
    struct Use {
        PointerCacheKey key;
        std::uint64_t last = 0;  // 0: never
    };
    std::span<abi::CachedPointers, abi::kMostCachedPointers> memory_;
    std::array<Use, abi::kMostCachedPointers> uses_{};  // of the entry at the same place
    std::uint64_t now_ = 0;
};

}  // namespace pccl::device
