#include "csrc/collective/arithmetic/reduction.h"

#include <algorithm>
#include <array>

namespace pccl::arithmetic {
namespace {

// The running result and one contribution stay in the first-level cache.
constexpr std::size_t kBlockBytes = 8 * kKiB;

bool rounds(ReduceOp op) {
    return op == ReduceOp::kSum || op == ReduceOp::kAvg || op == ReduceOp::kProduct;
}

}  // namespace

Reduction::Reduction(DataType type, ReduceOp op, int ranks)
    : type_(type),
      divisor_(op == ReduceOp::kAvg ? ranks : 1),
      // The sum of two halves is computed in float32 and rounded once anyway.
      widens_(is_half(type) && rounds(op) && (ranks > 2 || op == ReduceOp::kAvg)) {
    combine_ = combine_for(widens_ ? DataType::kFloat32 : type, op).value();
}

void Reduction::apply(std::byte* dst, std::span<const std::byte* const> sources,
                      std::size_t count) const {
    const std::size_t block = kBlockBytes / std::max(element_bytes(), sizeof(float) * widens_);
    for (std::size_t first = 0; first < count; first += block) {
        const std::size_t part = std::min(block, count - first);
        if (widens_)
            accumulate_halves(dst, sources, first, part);
        else
            apply_block(dst, sources, first, part);
    }
}

void Reduction::apply_block(std::byte* dst, std::span<const std::byte* const> sources,
                            std::size_t first, std::size_t count) const {
    alignas(kCacheLine) std::array<std::byte, kBlockBytes> sum;
    const std::size_t offset = first * element_bytes();
    // The last step alone writes to dst, which may be a contribution that is still to come.
    const std::byte* left = sources[0] + offset;
    for (std::size_t i = 1; i < sources.size(); ++i) {
        std::byte* const out = i + 1 == sources.size() ? dst + offset : sum.data();
        combine_(out, left, sources[i] + offset, count);
        left = out;
    }
    if (divisor_ > 1) divide(type_, dst + offset, count, divisor_);
}

void Reduction::accumulate_halves(std::byte* dst, std::span<const std::byte* const> sources,
                                  std::size_t first, std::size_t count) const {
    alignas(kCacheLine) std::array<float, kBlockBytes / sizeof(float)> sum;
    alignas(kCacheLine) std::array<float, kBlockBytes / sizeof(float)> next;
    const std::size_t offset = first * element_bytes();
    auto* const total = reinterpret_cast<std::byte*>(sum.data());
    widen(type_, sum.data(), sources[0] + offset, count);
    for (const std::byte* source : sources.subspan(1)) {
        widen(type_, next.data(), source + offset, count);
        combine_(total, total, reinterpret_cast<const std::byte*>(next.data()), count);
    }
    if (divisor_ > 1) divide(DataType::kFloat32, total, count, divisor_);
    narrow(type_, dst + offset, sum.data(), count);
}

}  // namespace pccl::arithmetic
