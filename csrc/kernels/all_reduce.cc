// SPDX-License-Identifier: Apache-2.0
#include "csrc/kernels/all_reduce.h"

namespace pccl::kernels {
namespace {

std::size_t part_of(std::size_t bytes, int ranks) {
    const auto n = static_cast<std::size_t>(ranks);
    return (bytes + n - 1) / n;
}

/// Returns a plan for `bytes` that `workers` ranks sum up, a part each.
Plan plan_parts(std::size_t bytes, int workers, const Thresholds& thresholds) {
    const bool is_large = bytes >= thresholds.all_reduce.least_for_most_blocks;
    return direct_plan(part_of(bytes, workers),
                       is_large ? abi::kMostBlocks : thresholds.usual_blocks);
}

}  // namespace

Plan plan_reduce(std::size_t bytes, const Gpus& gpus) {
    const Thresholds& thresholds = gpus.thresholds();
    if (fits_ll(bytes, gpus)) return ll_plan(bytes);
    if (gpus.are_several()) return plan_parts(bytes, gpus.count - 1, thresholds);
    return bytes < kLeastForRootAlone ? plan_parts(bytes, gpus.count, thresholds)
                                      : direct_plan(bytes, thresholds.usual_blocks);
}

bool is_faster_in_two(std::size_t bytes, const Gpus& gpus) {
    return gpus.are_several() && bytes >= gpus.thresholds().all_reduce.least_in_two;
}

Plan plan_all_reduce(std::size_t bytes, const Gpus& gpus) {
    const Thresholds& thresholds = gpus.thresholds();
    const std::size_t least_staggered = gpus.is_pair()
                                            ? thresholds.all_reduce.least_staggered_of_pair
                                            : thresholds.all_reduce.least_staggered;
    if (fits_ll(bytes, gpus)) return ll_plan(bytes);
    if (part_of(bytes, gpus.count) < least_staggered)
        return plan_parts(bytes, gpus.count, thresholds);
    return staggered_plan(gpus.is_pair() ? abi::kMostBlocks : thresholds.usual_blocks);
}

}  // namespace pccl::kernels
