// SPDX-License-Identifier: Apache-2.0
#include "csrc/costs/model/shm_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "csrc/base/ids.h"
#include "csrc/collective/geometry.h"

namespace pccl::costs {
namespace {

using schedule::CollectiveKind;

// Numbers of cache line round trips. A round moves three lines: the line with the posted position,
// the first line of the data, and the line with the read position. Each further awaited rank adds
// the line with its posted position; its data arrive concurrently with those of others.
constexpr double kLinesInRound = 3;
constexpr double kLinesOfFurther = 1;

bool moves_blocks(CollectiveKind kind) {
    return kind == CollectiveKind::kAllGather || kind == CollectiveKind::kGather ||
           kind == CollectiveKind::kScatter || kind == CollectiveKind::kAllToAll ||
           kind == CollectiveKind::kReduceScatter;
}

std::size_t bytes_of(const ShmCall& call) { return call.count * call.element_bytes; }

/// Returns the bytes that a rank accesses in its buffers.
std::size_t bytes_touched(const ShmCall& call, int ranks) {
    using schedule::Buffer;
    const int blocks = schedule::blocks(call.kind, Buffer::kInput, ranks) +
                       schedule::blocks(call.kind, Buffer::kOutput, ranks);
    return bytes_of(call) * static_cast<std::size_t>(blocks);
}

/// Returns seconds a byte for reads of the owner's memory. Some programs send data that they have
/// just written; others send unchanged data, which are still in the reader's caches. The geometric
/// mean has the same relative error for both. Data that are reduced in place have always just been
/// written.
double read_directly(CollectiveKind kind, Level level, const MachineCosts& costs) {
    const double changed = at(costs.direct, level);
    const Figure& again = costs.direct_again[static_cast<std::size_t>(level)];
    const bool may_be_again = again.is_measured && kind != CollectiveKind::kAllReduce;
    return may_be_again ? std::sqrt(changed * again.seconds) : changed;
}

/// Returns the fixed cost of a direct read. Concurrent readers of one process contend for the cache
/// lines of the kernel's locks and counters.
double direct_start(int ranks, const MachineCosts& costs) {
    constexpr double kLinesOfKernel = 8;
    const double lines = ranks > 2 ? kLinesOfKernel : 0;
    return costs.direct_start.seconds + lines * costs.core_round_trip.seconds;
}

/// Returns the bytes of the slots that a segment uses in turn in both buffers, for pieces of
/// `bytes` bytes. A buffer has a power of two in bytes, plus some KiB beside the headers, which
/// count for no cache level.
std::size_t bytes_of_slots(std::size_t bytes, const ShmShape& segment, const MachineCosts& costs) {
    const std::size_t slot = std::min(bytes, segment.buffer_bytes);
    const std::size_t in_turn = bytes_in_turn(slot, costs.cache_bytes[1]);
    return 2 * std::min(in_turn, std::bit_floor(segment.buffer_bytes));
}

/// Returns the cache level of the buffers of a call together with `slots` bytes of slots for each
/// rank.
Level level_beside(std::size_t slots, const ShmCall& call, int ranks, const MachineCosts& costs) {
    const std::size_t touched = bytes_touched(call, ranks);
    const Level own = std::max(costs.level_of(touched), costs.level_of(slots));
    if (own != Level::kLast) return own;
    return costs.level_of((touched + slots) * static_cast<std::size_t>(ranks));
}

CoreTransfer core_transfer_of(const ShmCall& call, const ShmShape& segment,
                              const MachineCosts& costs) {
    const std::size_t slots = bytes_of_slots(bytes_of(call), segment, costs);
    return core_transfer_at(level_beside(slots, call, segment.ranks, costs), costs);
}

/// Returns seconds of a round. A rank polls the ranks that it waits for one after the other; a
/// sending root does not wait for them.
double round_seconds(const ShmShape& segment, CollectiveKind kind, const MachineCosts& costs) {
    const bool from_root = kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kScatter;
    const int further = from_root ? 0 : segment.ranks - 2;
    const double lines =
        (kLinesInRound + kLinesOfFurther * further) * costs.core_round_trip.seconds;
    if (segment.ranks_on_core == 1) return lines;
    // Ranks run on a shared core one after the other.
    return lines + costs.shared_core_round_trip.seconds * segment.ranks_on_core / 2;
}

/// Returns the window with which one rank writes while the others read: nothing is read during the
/// first window, and each window costs a round. A few windows suffice.
std::size_t overlapping_window(const ShmShape& segment, const ShmCall& call,
                               const MachineCosts& costs) {
    constexpr std::size_t kWindows = 4;
    const std::size_t bytes = bytes_of(call);
    const std::size_t slots = bytes_of_slots(bytes, segment, costs);
    const CoreTransfer transfer =
        core_transfer_at(std::max(Level::kSecond, costs.level_of(slots)), costs);
    const double fastest =
        std::sqrt(static_cast<double>(bytes) * round_seconds(segment, call.kind, costs) /
                  std::min(transfer.give, transfer.take));
    return std::max(bytes / kWindows, static_cast<std::size_t>(fastest));
}

/// Returns the bytes of a window. Long windows make readers wait for the first and writers for the
/// last one. A window should also fit into the second-level cache together with its source and
/// destination.
std::size_t window_bytes(const ShmShape& segment, const ShmCall& call, ShmAlgorithm algorithm,
                         const MachineCosts& costs) {
    constexpr std::size_t kShortest = 64 * kKiB;
    const bool is_divided = divides_buffers(call.kind, algorithm);
    const std::size_t longest = std::min(is_divided ? segment.part_bytes : segment.buffer_bytes,
                                         std::max(costs.cache_bytes[1] / 4, kShortest));
    if (call.kind != CollectiveKind::kBroadcast) return longest;
    return std::min(longest, std::max(overlapping_window(segment, call, costs), kShortest));
}

/// Returns the length up to which data go through the segment with kDirect, if two ranks alone have
/// the length: below it the system call costs more than it saves.
std::size_t inline_bytes(const ShmShape& segment, const MachineCosts& costs) {
    constexpr CollectiveKind kKind = CollectiveKind::kAllToAll;
    const ShmCall call{kKind, 1, segment.part_bytes};
    const Level level = level_of(call, segment.ranks, costs);
    const CoreTransfer transfer = core_transfer_of(call, segment, costs);
    const double spared = transfer.both() - read_directly(kKind, level, costs);
    const double start = direct_start(segment.ranks, costs);
    if (spared * static_cast<double>(segment.part_bytes) <= start) return segment.part_bytes;
    return static_cast<std::size_t>(start / spared) / kCacheLine * kCacheLine;
}

/// Returns whether readers read the owner's memory.
bool bypasses_segment(const ShmShape& segment, const ShmCall& call, ShmAlgorithm algorithm,
                      const MachineCosts& costs) {
    if (algorithm != ShmAlgorithm::kDirect) return false;
    return !call.is_of_pairs || bytes_of(call) > inline_bytes(segment, costs);
}

/// Cost of one call for a rank, without waiting.
class CallCost {
   public:
    CallCost(const ShmShape& segment, const ShmCall& call, const MachineCosts& costs)
        : costs_(costs),
          kind_(call.kind),
          ranks_(segment.ranks),
          bytes_(static_cast<double>(bytes_of(call))),
          level_(level_of(call, segment.ranks, costs)),
          transfer_(core_transfer_of(call, segment, costs)),
          kept_(keeping(call, level_, costs)),
          start_(direct_start(segment.ranks, costs)) {}

    /// Returns seconds through the segment. When one rank writes for all, all windows but the first
    /// are written while earlier ones are read.
    [[nodiscard]] double over_shm(double window) const {
        if (kind_ == CollectiveKind::kBroadcast)
            return bytes_ * std::max(transfer_.give, transfer_.take) +
                   std::min(bytes_, window) * std::min(transfer_.give, transfer_.take);
        const double others = ranks_ - 1;
        const double given =
            moves_blocks(kind_) && kind_ != CollectiveKind::kAllGather ? others : 1;
        return bytes_ * (given * transfer_.give +
                         others * (reduces(kind_) ? taken() + added() : transfer_.take)) +
               kept_;
    }

    /// Returns seconds of a reduce_scatter, then an all_gather of its results.
    [[nodiscard]] double over_shm_in_parts() const {
        const double others = (ranks_ - 1) / ranks_;
        const double reduced = taken() + at(costs_.sum, level_);
        return bytes_ *
               (others * (transfer_.give + reduced + transfer_.take) + transfer_.give / ranks_);
    }

    /// Returns seconds of direct reads: pieces of all others, or one piece of a rank whose readers
    /// take turns in the kernel.
    [[nodiscard]] double directly() const { return (ranks_ - 1) * read(bytes_) + kept_; }

    /// Returns seconds of direct reads in parts. A rank writes its part where the others have read
    /// the last result, and reads theirs into its own cache. Neither moves as far through the
    /// caches as a copy does, and the sum includes that.
    [[nodiscard]] double directly_in_parts() const {
        const double part = bytes_ / ranks_;
        const double spared = at(costs_.copy, level_) - at(costs_.copy, nearby());
        return (ranks_ - 1) * (read(part) - part * spared + copied_directly(part)) +
               part * std::max(at(costs_.write, level_) - spared, 0.0);
    }

   private:
    [[nodiscard]] double copied_directly(double bytes) const {
        return start_ + bytes * read_directly(kind_, level_, costs_);
    }
    /// Returns seconds of reads. Operands of a reduction are read piece by piece into the core's
    /// own cache.
    [[nodiscard]] double read(double bytes) const {
        if (!reduces(kind_)) return copied_directly(bytes);
        const std::size_t at_once =
            reduced_at_once(costs_.cache_bytes[1], static_cast<int>(ranks_));
        const double calls = std::max(std::ceil(bytes / static_cast<double>(at_once)), 1.0);
        return calls * start_ + bytes * (read_directly(kind_, level_, costs_) + added());
    }
    /// Returns seconds a byte of operands that are reduced directly from a slot: this saves the
    /// write, 50 % of a copy.
    [[nodiscard]] double taken() const {
        return std::max(transfer_.take - at(costs_.copy, level_) / 2, 0.0);
    }
    /// Returns seconds a byte of the sum. The first operand meets this rank's own data; further
    /// ones meet the last sum.
    [[nodiscard]] double added() const {
        return (at(costs_.sum, level_) + (ranks_ - 2) * at(costs_.sum, nearby())) / (ranks_ - 1);
    }
    [[nodiscard]] Level nearby() const { return std::min(level_, Level::kSecond); }

    const MachineCosts& costs_;
    const CollectiveKind kind_;
    const double ranks_;
    const double bytes_;
    const Level level_;
    const CoreTransfer transfer_;
    const double kept_;
    const double start_;  // of a direct read
};

double predict(const ShmShape& segment, const ShmCall& call, ShmAlgorithm algorithm,
               const MachineCosts& costs) {
    const CallCost own(segment, call, costs);
    const double round = round_seconds(segment, call.kind, costs);
    const double in_turns = segment.ranks_on_core;
    const bool in_parts = scatters_first(call.kind, algorithm);
    if (bypasses_segment(segment, call, algorithm, costs))
        return 2 * round + in_turns * (in_parts ? own.directly_in_parts() : own.directly());
    const auto window = static_cast<double>(window_bytes(segment, call, algorithm, costs));
    const double in_window = in_parts ? window * segment.ranks : window;
    const double windows =
        std::max(std::ceil(static_cast<double>(bytes_of(call)) / in_window), 1.0);
    return (in_parts ? 2 : 1) * windows * round +
           in_turns * (in_parts ? own.over_shm_in_parts() : own.over_shm(window));
}

bool can_make(const ShmShape& segment, CollectiveKind kind, ShmAlgorithm algorithm) {
    return makes(algorithm, kind) && (algorithm != ShmAlgorithm::kDirect || segment.reads_directly);
}

}  // namespace

ShmCall shm_call(const Signature& call) {
    return {.kind = call.kind,
            .element_bytes = size_of(call.type),
            .count = call.count,
            .is_of_pairs = call.is_of_pairs};
}

Level level_of(const ShmCall& call, int ranks, const MachineCosts& costs) {
    return level_beside(0, call, ranks, costs);
}

double keeping(const ShmCall& call, Level level, const MachineCosts& costs) {
    const bool keeps = !reduces(call.kind) && !schedule::is_rooted(call.kind);
    return keeps ? static_cast<double>(bytes_of(call)) * at(costs.copy, level) : 0;
}

std::vector<Prediction> shm_predictions(const ShmShape& segment, const ShmCall& call,
                                        const MachineCosts& costs) {
    std::vector<Prediction> found;
    for (const ShmAlgorithm algorithm : kShmAlgorithms) {
        if (!can_make(segment, call.kind, algorithm)) continue;
        found.push_back({.on_shm = algorithm, .seconds = predict(segment, call, algorithm, costs)});
    }
    // For equal costs, the more capable algorithm comes first.
    std::sort(found.begin(), found.end(), [](const Prediction& a, const Prediction& b) {
        return a.seconds != b.seconds ? a.seconds < b.seconds : a.on_shm > b.on_shm;
    });
    return found;
}

ShmPlan plan_on_shm(const ShmShape& segment, const ShmCall& call, ShmAlgorithm algorithm,
                    const MachineCosts& costs) {
    const std::size_t grain = chunk_grain(call.element_bytes);
    const bool in_parts = scatters_first(call.kind, algorithm);
    // In parts, each window of the result has been an input just before.
    const bool leaves_caches = level_of(call, segment.ranks, costs) == Level::kMemory;
    if (algorithm == ShmAlgorithm::kDirect) {
        const auto parts = static_cast<std::size_t>(in_parts ? segment.ranks : 1);
        const std::size_t all = (call.count + parts - 1) / parts;
        constexpr std::size_t kAnyLength = std::size_t{1} << 48;
        return {.scatters_first = in_parts,
                .is_direct = true,
                .streams_results = !in_parts && leaves_caches,
                .window = call.is_of_pairs ? kAnyLength : (all + grain) / grain * grain,
                .inline_bytes = inline_bytes(segment, costs),
                .own_cache = costs.cache_bytes[1]};
    }
    const std::size_t bytes = window_bytes(segment, call, algorithm, costs);
    return {.scatters_first = in_parts,
            .streams_results = !in_parts && leaves_caches,
            .window = bytes / call.element_bytes / grain * grain,
            .own_cache = costs.cache_bytes[1]};
}

}  // namespace pccl::costs
