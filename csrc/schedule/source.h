// SPDX-License-Identifier: Apache-2.0

// Source of schedules for one collective, as a value: a built-in generator or a loaded schedule.
// Selection, prediction and execution depend only on this interface.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pccl/status.h>
#include "csrc/schedule/message_protocol.h"
#include "csrc/schedule/rotation.h"
#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

inline constexpr int kMostRanks = 65536;

/// Cost of a schedule. Each figure is the larger of a rank's sends and receives, and the maximum
/// over all ranks.
struct Cost {
    /// Messages on the critical path, each sent after the previous one has arrived
    /// (Verdict::rounds). Chunks that follow each other through a pipeline do not count here; they
    /// count in `messages`.
    long long rounds = 0;
    /// Messages that the busiest rank sends or receives.
    long long messages = 0;
    /// Bytes of the messages that a rank sends or receives.
    double bytes_sent = 0;
    /// Bytes, received or from memory, that are added to as many other bytes.
    double bytes_reduced = 0;
};

/// Ranks by position: rings, trees and butterflies are laid along the order, with neighbours next
/// to each other. Empty: rank r has position r.
using RankOrder = std::vector<Rank>;

/// Range of bytes of a collective's largest buffer, both ends included.
struct SizeRange {
    std::uint64_t least = 0;
    std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    [[nodiscard]] bool has(std::uint64_t bytes) const { return least <= bytes && bytes <= most; }
    auto operator<=>(const SizeRange&) const = default;
};

/// Source of schedules; identical on all ranks. Callers pass only shapes that check_shape()
/// accepts; `cost` and `longest_message` accept any root. The functions are thread-safe.
struct ScheduleSource {
    std::string name;  // as in PCCL_ALGORITHM
    CollectiveKind kind{};
    /// Sources with different programs have different digests.
    std::uint64_t digest = 0;
    /// Returns a short digest that travels with every collective. Two different sources collide
    /// with probability 2^-32; a catalogue then accepts only one of them.
    [[nodiscard]] std::uint32_t tag() const {
        return static_cast<std::uint32_t>(digest ^ (digest >> 32U));
    }
    /// For a loaded schedule: the shape for which it was made. More slots are valid, too.
    std::optional<Shape> only{};
    /// `only` accepts any root.
    bool any_root = false;
    /// Sizes for which the user loaded this source: it has priority over all sources that were not
    /// requested by name, and is used for no other sizes. Empty: used for any size where it costs
    /// least.
    std::optional<SizeRange> sizes{};
    /// Protocol that the author of the schedule requests; applies to GPUs that can carry the
    /// messages in it.
    std::optional<MessageProtocol> protocol{};
    /// Minimum Shape::slots without deadlock.
    int slots = 1;
    /// Supports blocks of different lengths, which ranks derive with schedule/moved_blocks.h.
    bool takes_uneven = false;
    /// Accepts any order of ranks.
    bool follows_order = false;
    /// More chunks than the least run side by side, each on its own channel.
    bool runs_side_by_side = false;
    /// Uses Shape::aggregation, any number from 1 on.
    bool aggregates = false;
    /// Every rank waits in each call for data that arrives by routes of different length, so that
    /// consecutive calls overlap little.
    bool holds_calls_up = false;
    /// Relation of all programs to rank 0's, for every shape; kNone: unknown.
    Symmetry symmetry = Symmetry::kNone;
    /// Several ranks compute the same reduction, possibly with swapped operands. In all other
    /// sources each element of a result is computed once and forwarded.
    bool swaps_operands = false;
    /// Returns the number of which Shape::chunks must be a multiple.
    std::function<int(int ranks)> granularity;
    /// Returns an upper bound of the chunks in a message of any rank.
    std::function<int(const Shape&)> longest_message;
    /// Returns the cost; cheap enough to call for every new size. `block_bytes` is the size of a
    /// block as in blocks(): the whole vector for all_reduce, broadcast and reduce; for the others,
    /// the contribution or result of one rank.
    std::function<Cost(const Shape&, double block_bytes)> cost;
    /// Returns the program of one rank on demand, so that many ranks need no n x n memory.
    std::function<Program(const Shape&, Rank)> program;
};

using SourcePtr = std::shared_ptr<const ScheduleSource>;

/// Returns the shape with the fewest chunks and slots.
[[nodiscard]] PCCL_API Shape least_shape(const ScheduleSource& source, int ranks, Rank root = 0);

/// Checks a shape. kInvalidArgument: out of range (1 <= ranks <= 65536, 0 <= root < ranks, 1 <=
/// chunks, at most 2^26 chunks in a buffer), or not the shape of the source. kUnsupported: the
/// source makes another collective.
[[nodiscard]] PCCL_API Status check_shape(const ScheduleSource& source, const Shape& shape);

/// Generates the program of a rank, laid along `order` if the source follows orders. Errors are
/// those of check_shape(), and kInvalidArgument for a rank out of range or an order that does not
/// contain every rank exactly once.
[[nodiscard]] PCCL_API Result<Program> generate_program(const ScheduleSource& source,
                                                        const Shape& shape, Rank rank,
                                                        const RankOrder& order = {});

/// Generates the programs of all ranks.
[[nodiscard]] PCCL_API Result<Schedule> generate(const ScheduleSource& source, const Shape& shape,
                                                 const RankOrder& order = {});

/// Returns a source with its own digest whose programs ignore the order passed to them. Requires a
/// source that follows orders. kInvalidArgument: `order` does not contain every rank exactly once.
[[nodiscard]] PCCL_API Result<SourcePtr> laid_along(const SourcePtr& source, RankOrder order);

}  // namespace pccl::schedule
