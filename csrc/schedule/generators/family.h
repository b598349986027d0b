// SPDX-License-Identifier: Apache-2.0

// Interface of a generator's file: its sources, with the closed forms of their costs.
//
// No generator writes the caller's input. Each is correct out of place and in place, except
// all_to_all, which is only out of place.
#pragma once

#include <string_view>
#include <vector>

#include "csrc/schedule/generators/builder.h"
#include "csrc/schedule/generators/sizes.h"
#include "csrc/schedule/source.h"

namespace pccl::schedule {

using Family = std::vector<ScheduleSource> (*)();

/// Functions of a generator, called for 2 ranks and more; a single rank copies.
struct Generator {
    CollectiveKind kind;
    Program (*make)(const Member&);
    BlockCost (*cost)(const Sizes&);
};

/// Returns a source with granularity 1 and a longest message of one chunk. `revision` counts the
/// versions of its programs. The caller overwrites the fields that differ.
[[nodiscard]] ScheduleSource generated(std::string_view name, const Generator& generator,
                                       int revision = 1);

/// Returns the granularity of sources for which Shape::chunks is a multiple of the ranks.
[[nodiscard]] inline int chunk_for_each_rank(int ranks) { return ranks; }
/// Returns the symmetry of a generator that identifies ranks and their blocks by their distance
/// alone.
[[nodiscard]] Symmetry seen_from_each_rank(CollectiveKind kind);
[[nodiscard]] inline int one_block(const Shape& shape) { return shape.chunks; }
/// Returns the chunks of the larger of the two buffers.
[[nodiscard]] int whole_buffer(const Shape& shape);
/// Returns the chunks of half of the blocks, rounded down, at least one block. A vector counts as
/// one part for each rank.
[[nodiscard]] int half_of_blocks(const Shape& shape);
/// Returns the longest message of exchanges that halve the data of a rank: half of all chunks, or
/// all of them where pairs of ranks fold first (fold.h: ranks that are no power of two).
[[nodiscard]] int halves_or_all(const Shape& shape);
/// Returns the longest message of exchanges that double the data of a rank, from one block to n.
[[nodiscard]] int doubled_blocks(const Shape& shape);
/// Returns true for all_reduce, broadcast and reduce: they have no block for each rank, so any rank
/// can have any position.
[[nodiscard]] bool has_one_block(CollectiveKind kind);

[[nodiscard]] std::vector<ScheduleSource> ring();
[[nodiscard]] std::vector<ScheduleSource> chain();
[[nodiscard]] std::vector<ScheduleSource> double_binary_tree();
[[nodiscard]] std::vector<ScheduleSource> recursive_doubling();
[[nodiscard]] std::vector<ScheduleSource> recursive_halving();
[[nodiscard]] std::vector<ScheduleSource> bruck();
[[nodiscard]] std::vector<ScheduleSource> one_shot();
[[nodiscard]] std::vector<ScheduleSource> two_shot();
[[nodiscard]] std::vector<ScheduleSource> binomial();
[[nodiscard]] std::vector<ScheduleSource> pairwise();
[[nodiscard]] std::vector<ScheduleSource> pat();
[[nodiscard]] std::vector<ScheduleSource> swing();

}  // namespace pccl::schedule
