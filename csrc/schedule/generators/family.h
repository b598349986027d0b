// What a generator's file says of itself: its sources, with the closed forms of their costs.
//
// None writes the input of its caller, and each is right whether input and output are one memory or
// two, all_to_all only for two.
#pragma once

#include <string_view>
#include <vector>

#include "csrc/schedule/generators/builder.h"
#include "csrc/schedule/generators/sizes.h"
#include "csrc/schedule/source.h"

namespace pccl::schedule {

using Family = std::vector<ScheduleSource> (*)();

/// For 2 ranks and more; one rank copies.
struct Generator {
    CollectiveKind kind;
    Program (*make)(const Member&);
    BlockCost (*cost)(const Sizes&);
};

/// A source with a granularity of 1 whose longest message is a chunk, at a revision of what it
/// makes; for its file to say what is otherwise.
[[nodiscard]] ScheduleSource generated(std::string_view name, const Generator& generator,
                                       int revision = 1);

/// Shape::chunks a multiple of the ranks.
[[nodiscard]] inline int chunk_for_each_rank(int ranks) { return ranks; }
/// The symmetry of a generator that knows ranks and their blocks by their distance alone.
[[nodiscard]] Symmetry seen_from_each_rank(CollectiveKind kind);
[[nodiscard]] inline int one_block(const Shape& shape) { return shape.chunks; }
/// Whole blocks, as many as the larger buffer has.
[[nodiscard]] int whole_buffer(const Shape& shape);
/// Half of these, rounded down, but one at least; of a vector, of its parts for each rank.
[[nodiscard]] int half_of_blocks(const Shape& shape);
/// Of exchanges that halve what ranks hold: half of all, but where pairs hand over the whole, as
/// ranks that are no power of two do (fold.h).
[[nodiscard]] int halves_or_all(const Shape& shape);
/// As many as a rank gets at most at a time where what it holds doubles: up to n, from one.
[[nodiscard]] int doubled_blocks(const Shape& shape);
/// all_reduce, broadcast and reduce have no block for each rank: any rank can have any position.
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
