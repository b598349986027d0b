// SPDX-License-Identifier: Apache-2.0

// Thresholds in bytes between the ways to launch, by architecture: measured, as data. Limits that
// follow from the shape of kernels (such as the LL lines of a block) stay beside the kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <pccl/export.h>

namespace pccl::kernels {

/// Compute capability of the only GPUs on which thresholds were measured.
inline constexpr int kHopper = 90;

/// Memory in which the kernels of a group meet: that of the GPUs, which reach each other over
/// NVLink or PCIe, or that of the host.
enum class GpuPath : std::uint8_t { kPeer, kPcie, kHost };

/// Sizes are bytes; `sent` is the data that leaves a GPU: a block for each of the others. A pair is
/// a group of two GPUs; several are more.
struct Thresholds {
    int architecture = kHopper;
    std::string_view measured_on{};

    std::size_t most_sent_by_ll = 0;  // above, LL takes longer than a barrier
    int usual_blocks = 0;             // fill NVLink from one GPU to the others
    int uneven_blocks = 0;            // for LL-sized blocks of different lengths

    /// Least size for copy engines, for blocks that are moved unchanged among several: as fast as
    /// kernels.
    std::size_t least_sent_by_copy_engines = 0;
    /// Least size where the user prefers copy engines: below, two small kernels take longer than
    /// the copy engines save.
    std::size_t least_sent_by_preferred_copy_engines = 0;

    struct AllReduce {
        std::size_t least_for_most_blocks = 0;    // of the tensor
        std::size_t least_staggered_of_pair = 0;  // of a rank's part of the tensor, as the next
        std::size_t least_staggered = 0;
        std::size_t least_in_two = 0;  // of the tensor, among several: reduce_scatter, all_gather
    } all_reduce;
    struct AllGather {
        std::size_t least_sent_staggered = 0;
    } all_gather;
    struct AllToAll {
        std::size_t least_sent_by_most_blocks = 0;
        std::size_t least_sent_staggered = 0;
    } all_to_all;
    /// Few blocks are enough for NVLink among several; with more to move, many are faster.
    struct ReduceScatter {
        std::size_t least_for_few = 0;  // of the block that a GPU gets
        std::size_t least_for_many = 0;
        int few_blocks = 0;
    } reduce_scatter;
    /// More blocks than NVLink needs obstruct each other in large broadcasts.
    struct Broadcast {
        std::size_t least_for_few = 0;
        int few_blocks = 0;
        int few_blocks_of_pair = 0;
        std::size_t most_for_few_of_pair = 0;
        int more_blocks_of_pair = 0;
    } broadcast;
    /// From one GPU to one other.
    struct Messages {
        std::size_t bytes_of_block = 0;
        std::size_t most_blocks = 0;
    } messages;
    struct Schedules {
        std::size_t least_in_chunk = 0;  // before another block shares a lane's work
        int most_blocks = 0;             // more are not faster
        int fifos = 0;                   // from one rank to another
        // Sizes of a chunk where LL128 lines arrive whole: above the first, LL takes longer than
        // LL128; above the second, LL128 takes longer than plain messages. They are not measured
        // but derived from the latency of a hop (0.6, 1.3 and 3.4 us) and the bytes that travel for
        // each byte of data (2, 1.07 and 1) at 370 GB/s.
        std::size_t most_chunk_by_ll = 0;
        std::size_t most_chunk_by_ll_without_ll128 = 0;  // above, LL takes longer than plain ones
        std::size_t most_chunk_by_ll128 = 0;
    } schedules;
};

/// Returns all thresholds of a path in the order of architectures.
[[nodiscard]] PCCL_API std::span<const Thresholds> measured_thresholds(
    GpuPath path = GpuPath::kPeer);

/// Returns the thresholds of the newest measured architecture that is not newer than this one,
/// otherwise the oldest.
[[nodiscard]] PCCL_API const Thresholds& thresholds_of(int architecture,
                                                       GpuPath path = GpuPath::kPeer);

/// GPUs of a group: their number and compute capability (90 is sm_90), which is rank 0's for all,
/// and where they meet. A number alone converts to that many GPUs of the measured kind.
struct Gpus {
    constexpr Gpus(int how_many, int capability = kHopper,  // NOLINT: implicit by design
                   GpuPath by = GpuPath::kPeer)
        : count(how_many), architecture(capability), path(by) {}
    [[nodiscard]] const Thresholds& thresholds() const { return thresholds_of(architecture, path); }
    /// Returns whether their bytes go over PCIe, where reads wait and schedules are used.
    [[nodiscard]] bool are_over_pcie() const { return path != GpuPath::kPeer; }
    [[nodiscard]] bool is_pair() const { return count == 2; }
    [[nodiscard]] bool are_several() const { return count > 2; }
    /// Returns the bytes that leave a GPU with `bytes` for each of the others.
    [[nodiscard]] std::size_t sent(std::size_t bytes) const {
        return bytes * static_cast<std::size_t>(count - 1);
    }

    int count;
    int architecture;
    GpuPath path;
};

}  // namespace pccl::kernels
