// SPDX-License-Identifier: Apache-2.0
#include "csrc/collective/arithmetic/reduction.h"

#include <algorithm>
#include <array>

#include "csrc/base/ids.h"

namespace pccl::arithmetic {
namespace {

// The partial result and one contribution fit into the first-level cache.
constexpr std::size_t kBlockBytes = 8 * kKiB;

}  // namespace

void Reduction::apply(std::byte* dst, std::span<const std::byte* const> sources,
                      std::size_t count) const {
    const std::size_t block = kBlockBytes / accumulator_.element_bytes();
    for (std::size_t first = 0; first < count; first += block) {
        const std::size_t part = std::min(block, count - first);
        if (accumulator_.is_wide())
            accumulate_wide(dst, sources, first, part);
        else
            apply_block(dst, sources, first, part);
    }
}

void Reduction::apply_block(std::byte* dst, std::span<const std::byte* const> sources,
                            std::size_t first, std::size_t count) const {
    alignas(kCacheLine) std::array<std::byte, kBlockBytes> sum;
    const std::size_t offset = first * element_bytes_;
    // Only the last step writes to dst, which may be a contribution that is read later.
    const std::byte* left = sources[0] + offset;
    for (std::size_t i = 1; i < sources.size(); ++i) {
        std::byte* const out = i + 1 == sources.size() ? dst + offset : sum.data();
        accumulator_.combine()(out, left, sources[i] + offset, count);
        left = out;
    }
    accumulator_.finish(dst + offset, dst + offset, count);
}

void Reduction::accumulate_wide(std::byte* dst, std::span<const std::byte* const> sources,
                                std::size_t first, std::size_t count) const {
    alignas(kCacheLine) std::array<std::byte, kBlockBytes> sum;
    alignas(kCacheLine) std::array<std::byte, kBlockBytes> next;
    const std::size_t offset = first * element_bytes_;
    accumulator_.widen(sum.data(), sources[0] + offset, count);
    for (const std::byte* source : sources.subspan(1)) {
        accumulator_.widen(next.data(), source + offset, count);
        accumulator_.combine()(sum.data(), sum.data(), next.data(), count);
    }
    accumulator_.finish(dst + offset, sum.data(), count);
}

}  // namespace pccl::arithmetic
