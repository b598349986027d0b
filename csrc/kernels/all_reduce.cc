#include "csrc/kernels/all_reduce.h"

#include "csrc/base/ids.h"

namespace pccl::kernels {
namespace {

std::size_t part_of(std::size_t bytes, int ranks) {
    const auto n = static_cast<std::size_t>(ranks);
    return (bytes + n - 1) / n;
}

/// `bytes` summed up by so many, a part each.
Plan plan_parts(std::size_t bytes, int workers) {
    return direct_plan(part_of(bytes, workers), bytes < 16 * kMiB ? 64 : abi::kMostBlocks);
}

}  // namespace

Plan plan_reduce(std::size_t bytes, int ranks) {
    if (fits_words(bytes, ranks)) return words_plan(bytes);
    if (ranks > 2) return plan_parts(bytes, ranks - 1);
    return bytes < kLeastForRootAlone ? plan_parts(bytes, ranks) : direct_plan(bytes, 64);
}

bool is_faster_in_two(std::size_t bytes, int ranks) { return ranks > 2 && bytes >= 384 * kMiB; }

Plan plan_all_reduce(std::size_t bytes, int ranks) {
    const bool is_pair = ranks == 2;
    // Of a part: from here on turns gain more than they cost.
    const std::size_t least_in_turns = (is_pair ? 16 : 8) * kMiB;
    if (fits_words(bytes, ranks)) return words_plan(bytes);
    if (part_of(bytes, ranks) < least_in_turns) return plan_parts(bytes, ranks);
    return turns_plan(is_pair ? abi::kMostBlocks : 64);
}

}  // namespace pccl::kernels
