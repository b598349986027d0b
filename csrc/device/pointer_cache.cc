// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/pointer_cache.h"

#include <algorithm>
#include <atomic>

namespace pccl::device {

abi::CachedPointers& PointerCache::of(const PointerCacheKey& key) {
    auto use = std::ranges::find_if(
        uses_, [&](const Use& each) { return each.last != 0 && each.key == key; });
    const bool is_new = use == uses_.end();
    if (is_new) use = std::ranges::min_element(uses_, {}, &Use::last);
    *use = {.key = key, .last = ++now_};
    abi::CachedPointers& cached_pointers = memory_[static_cast<std::size_t>(use - uses_.begin())];
    if (is_new) {
        for (std::uint64_t& input : cached_pointers.inputs)
            std::atomic_ref(input).store(0, std::memory_order_relaxed);
    }
    return cached_pointers;
}

std::uint64_t PointerCache::input_of(abi::CachedPointers& cached_pointers, int peer) {
    std::uint64_t& input = cached_pointers.inputs[static_cast<std::size_t>(peer)];
    return std::atomic_ref(input).load(std::memory_order_relaxed);
}

}  // namespace pccl::device
