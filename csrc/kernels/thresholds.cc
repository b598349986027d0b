// SPDX-License-Identifier: Apache-2.0
#include "csrc/kernels/thresholds.h"

#include <algorithm>
#include <array>
#include <limits>
#include <ranges>

#include "csrc/abi/device_program.h"
#include "csrc/abi/device_team.h"
#include "csrc/base/ids.h"

namespace pccl::kernels {
namespace {

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

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
                  .most_blocks = abi::kMostBlocks,
                  .fifos = abi::kDeviceFifos,
                  .most_chunk_by_ll = 256 * kKiB,
                  .most_chunk_by_ll_without_ll128 = kNever,
                  .most_chunk_by_ll128 = 2 * kMiB},
}}};
static_assert(std::ranges::is_sorted(kMeasured, {}, &Thresholds::architecture));

// Over PCIe, kernels carry small messages by LL; schedules carry all others. The sizes are derived
// from PCIe 5 with 16 lanes, 50 GB/s each way: LL takes 4 us and moves twice the bytes, a
// schedule's messages take 12 us. On two H200s through the host, 8 to 24 blocks take longer than 32
// from 16 MiB on, and 64 take as long.
constexpr Thresholds kOverPcie{
    .architecture = kHopper,
    .measured_on = "",
    .most_sent_by_ll = 128 * kKiB,
    .usual_blocks = 64,
    .uneven_blocks = 16,
    .least_sent_by_copy_engines = kNever,
    .least_sent_by_preferred_copy_engines = kNever,
    .all_reduce = {.least_for_most_blocks = kNever,
                   .least_staggered_of_pair = kNever,
                   .least_staggered = kNever,
                   .least_in_two = kNever},
    .all_gather = {.least_sent_staggered = kNever},
    .all_to_all = {.least_sent_by_most_blocks = kNever, .least_sent_staggered = kNever},
    .reduce_scatter = {.least_for_few = kNever, .least_for_many = kNever, .few_blocks = 16},
    .broadcast = {.least_for_few = kNever,
                  .few_blocks = 16,
                  .few_blocks_of_pair = 16,
                  .most_for_few_of_pair = kNever,
                  .more_blocks_of_pair = 32},
    .messages = {.bytes_of_block = 32 * kKiB, .most_blocks = 64},
    .schedules = {.least_in_chunk = 4 * kKiB,
                  .most_blocks = 32,
                  .fifos = abi::kDeviceFifos,
                  .most_chunk_by_ll = 64 * kKiB,
                  .most_chunk_by_ll_without_ll128 = 64 * kKiB,
                  .most_chunk_by_ll128 = 0},
};

constexpr std::array<Thresholds, 1> kThroughHost{[] {
    Thresholds thresholds = kOverPcie;
    thresholds.schedules.fifos = abi::kFirstMessageFifo;  // messages have the others
    return thresholds;
}()};
constexpr std::array<Thresholds, 1> kFromGpuToGpu{kOverPcie};
static_assert(std::ranges::is_sorted(kThroughHost, {}, &Thresholds::architecture));
static_assert(std::ranges::is_sorted(kFromGpuToGpu, {}, &Thresholds::architecture));

}  // namespace

std::span<const Thresholds> measured_thresholds(GpuPath path) {
    if (path == GpuPath::kHost) return kThroughHost;
    if (path == GpuPath::kPcie) return kFromGpuToGpu;
    return kMeasured;
}

const Thresholds& thresholds_of(int architecture, GpuPath path) {
    const auto all = measured_thresholds(path);
    for (const Thresholds& measured : all | std::views::reverse)
        if (measured.architecture <= architecture) return measured;
    return all.front();
}

}  // namespace pccl::kernels
