#include "csrc/kernels/all_reduce.h"

#include "csrc/base/ids.h"

namespace pccl::kernels {
namespace {

// From here on pushing in turns gains more than the way through stages costs.
constexpr std::size_t kLeastStaged = 16 * kMiB;

}  // namespace

Plan plan_all_reduce(std::size_t bytes, int ranks) {
    const auto n = static_cast<std::size_t>(ranks);
    if (bytes <= kMostWordBytes && bytes * (n - 1) <= kMostSentInWords) return words_plan(bytes);
    const std::size_t part = (bytes + n - 1) / n;
    if (part >= kLeastStaged) return staged_plan(part, 2 * abi::kMostStagedPairs);
    return direct_plan(part, bytes < 16 * kMiB ? 64 : abi::kMostBlocks);
}

}  // namespace pccl::kernels
