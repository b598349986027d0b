// SPDX-License-Identifier: Apache-2.0
#include "csrc/kernels/thresholds.h"

#include <algorithm>
#include <array>
#include <ranges>

#include "csrc/base/ids.h"

namespace pccl::kernels {
namespace {

constexpr std::array<Thresholds, 1> kMeasured{{{
    .architecture = kHopper,
    .measured_on = "4 x H200",
    .most_sent_by_ll = 448 * kKiB,
    .usual_blocks = 64,
    .uneven_blocks = 16,
    .least_sent_by_copy_engines = 384 * kMiB,
    .least_sent_by_preferred_copy_engines = 16 * kMiB,
    .all_reduce = {.least_for_most_blocks = 16 * kMiB,
                   .least_staggered_of_pair = 16 * kMiB,
                   .least_staggered = 8 * kMiB,
                   .least_in_two = 384 * kMiB},
    .all_gather = {.least_sent_staggered = 24 * kMiB},
    .all_to_all = {.least_sent_by_most_blocks = 8 * kMiB, .least_sent_staggered = 32 * kMiB},
    .reduce_scatter = {.least_for_few = 6 * kMiB, .least_for_many = 32 * kMiB, .few_blocks = 16},
    .broadcast = {.least_for_few = 8 * kMiB,
                  .few_blocks = 8,
                  .few_blocks_of_pair = 16,
                  .most_for_few_of_pair = 64 * kMiB,
                  .more_blocks_of_pair = 32},
    .messages = {.bytes_of_block = 64 * kKiB, .most_blocks = 64},
    .schedules = {.least_in_chunk = 2 * kKiB,
                  .most_chunk_by_ll = 256 * kKiB,
                  .most_chunk_by_ll128 = 2 * kMiB},
}}};
static_assert(std::ranges::is_sorted(kMeasured, {}, &Thresholds::architecture));

}  // namespace

std::span<const Thresholds> measured_thresholds() { return kMeasured; }

const Thresholds& thresholds_of(int architecture) {
    for (const Thresholds& measured : kMeasured | std::views::reverse)
        if (measured.architecture <= architecture) return measured;
    return kMeasured.front();
}

}  // namespace pccl::kernels
