// SPDX-License-Identifier: Apache-2.0
#include "csrc/kernels/collective_plans.h"

namespace pccl::kernels {
namespace {

std::size_t part_of(std::size_t bytes, int ranks) {
    const auto n = static_cast<std::size_t>(ranks);
    return (bytes + n - 1) / n;
}

/// Returns a plan for `bytes` that `workers` ranks sum up, a part each.
LaunchPlan plan_parts(std::size_t bytes, int workers, const Thresholds& thresholds) {
    const bool is_large = bytes >= thresholds.all_reduce.least_for_most_blocks;
    return direct_plan(part_of(bytes, workers),
                       is_large ? abi::kMostBlocks : thresholds.usual_blocks);
}

bool is_for_copy_engines(std::size_t bytes, const Gpus& gpus) {
    return gpus.are_several() && gpus.sent(bytes) >= gpus.thresholds().least_sent_by_copy_engines;
}

LaunchPlan plan_exchange(std::size_t bytes, const Gpus& gpus) {
    if (fits_ll(bytes, gpus)) return ll_plan(bytes);
    return direct_plan(gpus.sent(bytes), gpus.thresholds().usual_blocks);
}

}  // namespace

LaunchPlan plan_reduce(std::size_t bytes, const Gpus& gpus) {
    const Thresholds& thresholds = gpus.thresholds();
    if (fits_ll(bytes, gpus)) return ll_plan(bytes);
    if (gpus.are_several()) return plan_parts(bytes, gpus.count - 1, thresholds);
    return bytes < kLeastForRootAlone ? plan_parts(bytes, gpus.count, thresholds)
                                      : direct_plan(bytes, thresholds.usual_blocks);
}

bool is_faster_in_two(std::size_t bytes, const Gpus& gpus) {
    return gpus.are_several() && bytes >= gpus.thresholds().all_reduce.least_in_two;
}

LaunchPlan plan_all_reduce(std::size_t bytes, const Gpus& gpus) {
    const Thresholds& thresholds = gpus.thresholds();
    const std::size_t least_staggered = gpus.is_pair()
                                            ? thresholds.all_reduce.least_staggered_of_pair
                                            : thresholds.all_reduce.least_staggered;
    if (fits_ll(bytes, gpus)) return ll_plan(bytes);
    if (part_of(bytes, gpus.count) < least_staggered)
        return plan_parts(bytes, gpus.count, thresholds);
    return staggered_plan(gpus.is_pair() ? abi::kMostBlocks : thresholds.usual_blocks);
}

LaunchPlan plan_all_gather(std::size_t bytes, const Gpus& gpus) {
    const Thresholds& thresholds = gpus.thresholds();
    if (is_for_copy_engines(bytes, gpus)) return copy_engine_plan();
    if (gpus.sent(bytes) >= thresholds.all_gather.least_sent_staggered)
        return staggered_plan(thresholds.usual_blocks);
    return plan_exchange(bytes, gpus);
}

LaunchPlan plan_all_to_all(std::size_t bytes, const Gpus& gpus) {
    const auto& thresholds = gpus.thresholds().all_to_all;
    const std::size_t sent = gpus.sent(bytes);
    if (fits_ll(bytes, gpus)) return ll_plan(bytes);
    if (is_for_copy_engines(bytes, gpus)) return copy_engine_plan();
    if (sent >= thresholds.least_sent_staggered) return staggered_plan(abi::kMostBlocks);
    const bool is_small = sent < thresholds.least_sent_by_most_blocks;
    return direct_plan(sent, is_small ? gpus.thresholds().usual_blocks : abi::kMostBlocks);
}

LaunchPlan plan_reduce_scatter(std::size_t bytes, const Gpus& gpus) {
    const auto& thresholds = gpus.thresholds().reduce_scatter;
    const std::size_t got = gpus.sent(bytes);
    if (gpus.are_several() && got >= thresholds.least_for_few && got < thresholds.least_for_many)
        return direct_plan(got, thresholds.few_blocks);
    return plan_exchange(bytes, gpus);
}

LaunchPlan plan_broadcast(std::size_t bytes, const Gpus& gpus) {
    const auto& thresholds = gpus.thresholds().broadcast;
    if (fits_ll(bytes, gpus)) return ll_plan(bytes);
    if (bytes < thresholds.least_for_few) return direct_plan(bytes, gpus.thresholds().usual_blocks);
    if (gpus.are_several()) return direct_plan(bytes, thresholds.few_blocks);
    return direct_plan(bytes, bytes > thresholds.most_for_few_of_pair
                                  ? thresholds.more_blocks_of_pair
                                  : thresholds.few_blocks_of_pair);
}

}  // namespace pccl::kernels
