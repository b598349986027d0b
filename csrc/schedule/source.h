// One way to make one collective, as a value: built-in generators are one kind of them, a schedule
// that somebody hands over another, and whoever chooses, predicts or runs knows only this.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/schedule/message_protocol.h"
#include "csrc/schedule/rotation.h"
#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

inline constexpr int kMostRanks = 65536;

/// What a schedule costs. Of a rank that sends more than it receives, or the other way round, the
/// larger counts; over all ranks, the largest does.
struct Cost {
    /// Messages on the critical path, each sent after the one before it has arrived
    /// (Verdict::rounds). Chunks that follow each other through a pipeline do not count; `messages`
    /// does.
    long long rounds = 0;
    /// Sent, or received, by the rank with the most.
    long long messages = 0;
    /// In the messages that a rank sends, or receives.
    double bytes_sent = 0;
    /// Incoming, or from memory, and added to as many other bytes.
    double bytes_reduced = 0;
};

/// Ranks by position: rings, trees and butterflies are laid along it, neighbours next to each
/// other. Empty: rank r has position r.
using RankOrder = std::vector<Rank>;

/// Bytes of a collective's largest buffer, both ends included.
struct SizeRange {
    std::uint64_t least = 0;
    std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    [[nodiscard]] bool has(std::uint64_t bytes) const { return least <= bytes && bytes <= most; }
    auto operator<=>(const SizeRange&) const = default;
};

/// The same on all ranks. The functions are called with shapes that check_shape() has let pass,
/// `cost` and `longest_message` with any root, and may be called by several threads.
struct ScheduleSource {
    std::string name;  // as PCCL_ALGORITHM has it
    CollectiveKind kind{};
    /// Two sources whose programs differ have different digests.
    std::uint64_t digest = 0;
    /// Of the digest, for what travels with every collective: two sources that differ have the same
    /// one time in 2^32, and then a catalogue takes one of them.
    [[nodiscard]] std::uint32_t tag() const {
        return static_cast<std::uint32_t>(digest ^ (digest >> 32U));
    }
    /// Of a schedule that was handed over: the one shape it is for, but that more slots do.
    std::optional<Shape> only{};
    /// But for its root.
    bool any_root = false;
    /// Where somebody said so: chosen for these sizes before all that nobody asked for by name, and
    /// for no others. Empty: for any, where it costs least.
    std::optional<SizeRange> sizes{};
    /// Where whoever wrote it asks for one: for GPUs, where it can carry the messages.
    std::optional<MessageProtocol> protocol{};
    /// The least Shape::slots with which it cannot deadlock.
    int slots = 1;
    /// Works for blocks of different lengths, which ranks find out by schedule/moved_blocks.h.
    bool takes_uneven = false;
    /// May be laid along any order of ranks.
    bool follows_order = false;
    /// More chunks than the least run side by side, on a channel each.
    bool runs_side_by_side = false;
    /// Follows Shape::aggregation, any number from 1 on.
    bool aggregates = false;
    /// Every rank waits in each call for parts that come by ways of different length, so that calls
    /// which follow each other overlap little.
    bool holds_calls_up = false;
    /// How the programs of all ranks follow from rank 0's, whatever the shape; kNone: not known.
    Symmetry symmetry = Symmetry::kNone;
    /// Several ranks make the same reduction, and may swap the operands of its steps: by all others
    /// each element of a result is made once, and passed on.
    bool swaps_operands = false;
    /// Shape::chunks must be a multiple of it.
    std::function<int(int ranks)> granularity;
    /// No message of any rank is longer, in chunks.
    std::function<int(const Shape&)> longest_message;
    /// Cheap enough for every new size. `block_bytes` is the size of a block as blocks() counts
    /// them: the whole vector for all_reduce, broadcast and reduce; what one rank contributes or
    /// gets for the others.
    std::function<Cost(const Shape&, double block_bytes)> cost;
    /// One rank's, on demand, so that many ranks cost no n x n memory.
    std::function<Program(const Shape&, Rank)> program;
};

using SourcePtr = std::shared_ptr<const ScheduleSource>;

/// With the fewest chunks and slots.
[[nodiscard]] PCCL_API Shape least_shape(const ScheduleSource& source, int ranks, Rank root = 0);

/// kInvalidArgument for a shape out of range: 1 <= ranks <= 65536, 0 <= root < ranks, 1 <= chunks,
/// at most 2^26 chunks in a buffer, or a shape that the source is not for; kUnsupported where it
/// makes another collective.
[[nodiscard]] PCCL_API Status check_shape(const ScheduleSource& source, const Shape& shape);

/// Laid along `order` where the source follows orders. Errors as check_shape(), and
/// kInvalidArgument for a rank out of range or an order that does not have every rank once.
[[nodiscard]] PCCL_API Result<Program> generate_program(const ScheduleSource& source,
                                                        const Shape& shape, Rank rank,
                                                        const RankOrder& order = {});

/// The programs of all ranks.
[[nodiscard]] PCCL_API Result<Schedule> generate(const ScheduleSource& source, const Shape& shape,
                                                 const RankOrder& order = {});

}  // namespace pccl::schedule
