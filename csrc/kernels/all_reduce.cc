#include "csrc/kernels/all_reduce.h"

#include "csrc/base/ids.h"

namespace pccl::kernels {
namespace {

// Of a part: from here on turns gain more than they cost.
constexpr std::size_t kLeastInTurns = 16 * kMiB;

std::size_t part_of(std::size_t bytes, int ranks) {
    const auto n = static_cast<std::size_t>(ranks);
    return (bytes + n - 1) / n;
}

}  // namespace

Plan plan_reduce(std::size_t bytes, int ranks) {
    const std::size_t sent = bytes * static_cast<std::size_t>(ranks - 1);
    if (bytes <= kMostWordBytes && sent <= kMostSentInWords) return words_plan(bytes);
    return direct_plan(part_of(bytes, ranks), bytes < 16 * kMiB ? 64 : abi::kMostBlocks);
}

bool is_faster_in_two(std::size_t bytes, int ranks) { return ranks > 2 && bytes >= 192 * kMiB; }

Plan plan_all_reduce(std::size_t bytes, int ranks) {
    if (part_of(bytes, ranks) >= kLeastInTurns) return turns_plan(abi::kMostBlocks);
    return plan_reduce(bytes, ranks);
}

}  // namespace pccl::kernels
