#include "csrc/kernels/all_reduce.h"

#include "csrc/base/ids.h"

namespace pccl::kernels {
namespace {

// Of a part: from here on turns gain more than they cost.
constexpr std::size_t kLeastInTurns = 16 * kMiB;

}  // namespace

Plan plan_all_reduce(std::size_t bytes, int ranks) {
    const auto n = static_cast<std::size_t>(ranks);
    if (bytes <= kMostWordBytes && bytes * (n - 1) <= kMostSentInWords) return words_plan(bytes);
    const std::size_t part = (bytes + n - 1) / n;
    if (part >= kLeastInTurns) return turns_plan(abi::kMostBlocks);
    return direct_plan(part, bytes < 16 * kMiB ? 64 : abi::kMostBlocks);
}

}  // namespace pccl::kernels
