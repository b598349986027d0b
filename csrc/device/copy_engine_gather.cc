// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/copy_engine_gather.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "csrc/base/ids.h"

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

namespace {

using sys::cuda::DeviceAddress;

}  // namespace

CopyEngineGather::~CopyEngineGather() {
    if (side_) static_cast<void>(options_.driver.destroy_stream(*side_));
}

Status CopyEngineGather::launch(kernels::Pull& pull, schedule::CollectiveKind kind,
                                const std::byte* own, kernels::Stream stream) {
    use_cached_pointers(pull, kind, own);
    const int ranks = pull.team.size;
    const bool keeps = pull.pulled[at(pull.team.rank)] != nullptr;
    if (keeps) PCCL_TRY(copy_own(pull, stream));
    PCCL_TRY(kernels::launch_pull_begin(pull, stream));
    // Ranks begin with different peers, so that each peer is read by one rank at a time.
    for (int step = 1; step < ranks; ++step)
        PCCL_TRY(copy(pull, (pull.team.rank + step) % ranks, stream));
    if (keeps) PCCL_TRY(options_.driver.fork(stream, *side_));
    return kernels::launch_pull_end(pull, stream);
}

void CopyEngineGather::use_cached_pointers(kernels::Pull& pull, schedule::CollectiveKind kind,
                                           const std::byte* own) {
    const std::size_t self = at(pull.team.rank);
    pull.cached_pointers = &pointer_cache_.of({kind, own, pull.outputs[self], pull.bytes[self]});
    for (int peer = 0; peer < pull.team.size; ++peer) {
        const std::uint64_t input = PointerCache::input_of(*pull.cached_pointers, peer);
        const bool is_pulled = input != 0 && options_.is_mapped(input, pull.bytes[at(peer)]);
        pull.pulled[at(peer)] = is_pulled ? std::bit_cast<const std::byte*>(input) : nullptr;
    }
    pull.pulled[self] = own == pull.outputs[self] ? nullptr : own;
}

Status CopyEngineGather::copy(const kernels::Pull& pull, int peer, kernels::Stream stream) {
    const std::byte* const from = pull.pulled[at(peer)];
    const std::size_t bytes = pull.bytes[at(peer)];
    if (from == nullptr || bytes == 0) return Status::ok();
    return options_.driver.copy(std::bit_cast<DeviceAddress>(pull.outputs[at(peer)]),
                                std::bit_cast<DeviceAddress>(from), bytes, stream);
}

/// Copies the own block beside the others: it does not cross NVLink.
Status CopyEngineGather::copy_own(const kernels::Pull& pull, kernels::Stream stream) {
    if (!side_) {
        PCCL_ASSIGN_OR_RETURN(side_, options_.driver.create_stream(options_.device));
    }
    PCCL_TRY(options_.driver.fork(*side_, stream));
    return copy(pull, pull.team.rank, *side_);
}

}  // namespace pccl::device
