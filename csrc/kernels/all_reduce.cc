#include "csrc/kernels/all_reduce.h"

#include "csrc/base/ids.h"

namespace pccl::kernels {
namespace {

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

bool is_faster_in_two(std::size_t bytes, int ranks) { return ranks > 2 && bytes >= 384 * kMiB; }

Plan plan_all_reduce(std::size_t bytes, int ranks) {
    const bool is_pair = ranks == 2;
    // Of a part: from here on turns gain more than they cost.
    const std::size_t least_in_turns = (is_pair ? 16 : 8) * kMiB;
    if (part_of(bytes, ranks) < least_in_turns) return plan_reduce(bytes, ranks);
    return turns_plan(is_pair ? abi::kMostBlocks : 64);
}

}  // namespace pccl::kernels
