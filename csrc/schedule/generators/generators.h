// The built-in algorithms. Each makes one rank's program on demand, so that large n costs no n x n
// memory.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

enum class Algorithm : std::uint8_t {
    kRing,               // all_reduce, all_gather, reduce_scatter, broadcast, reduce
    kDoubleBinaryTree,   // all_reduce, broadcast, reduce
    kRecursiveDoubling,  // all_reduce (whole vector), all_gather; any n
    kRecursiveHalving,   // reduce_scatter, all_reduce (halving, then doubling); any n
    kBruck,              // all_gather, all_to_all
    kOneShot,            // all pairs in one round: every collective
    kTwoShot,            // all-pairs reduce_scatter, then all-pairs all_gather: all_reduce
    kBinomial,           // broadcast, reduce, gather, scatter
    kPairwise,           // all_to_all
    kPat,                // all_gather, reduce_scatter, all_reduce; any n
};

[[nodiscard]] PCCL_API std::string_view to_string(Algorithm algorithm);

/// Every algorithm that can make `kind`.
[[nodiscard]] PCCL_API std::span<const Algorithm> algorithms_for(CollectiveKind kind);

/// Errors: kInvalidArgument for a shape out of range (1 <= ranks <= 65536, 0 <= root < ranks, 1 <=
/// chunks, at most 2^26 chunks in a buffer, or a chunk count or slot count that the algorithm
/// cannot use), kUnsupported where the algorithm does not make this collective.
[[nodiscard]] PCCL_API Result<Program> generate_program(Algorithm algorithm, const Shape& shape,
                                                        Rank rank);

/// The programs of all ranks.
[[nodiscard]] PCCL_API Result<Schedule> generate(Algorithm algorithm, const Shape& shape);

/// Ranks by position: rings, trees and butterflies are laid along it, neighbours next to each
/// other. Empty: rank r has position r.
using RankOrder = std::vector<Rank>;

/// Whether the algorithm may be laid along any order: where each rank has a block of its own, only
/// those that move the blocks one by one are.
[[nodiscard]] PCCL_API bool follows_order(Algorithm algorithm, CollectiveKind kind);

/// As above, with the ranks in `order`; algorithms that do not follow orders are as without.
/// kInvalidArgument also when `order` does not have every rank once.
[[nodiscard]] PCCL_API Result<Program> generate_program(Algorithm algorithm, const Shape& shape,
                                                        Rank rank, const RankOrder& order);
[[nodiscard]] PCCL_API Result<Schedule> generate(Algorithm algorithm, const Shape& shape,
                                                 const RankOrder& order);

/// Whether several ranks make the same reduction, and may swap the operands of its steps: by all
/// other algorithms each element of a result is made once, and passed on.
[[nodiscard]] PCCL_API bool swaps_operands(Algorithm algorithm, CollectiveKind kind);

/// The chunk count an algorithm needs at least; it accepts any multiple. n for ring, PAT and
/// two-shot all_reduce, the largest power of two <= n for halving all_reduce, 2 for the double tree
/// (one a tree), else 1. 1 for one rank.
///
/// What more chunks mean: ring: that many times the granularity run side by side, a channel each;
/// chain (ring broadcast and reduce), binomial broadcast and reduce, double tree: a message each,
/// pipelined; elsewhere nothing, a message is as many chunks as there are.
[[nodiscard]] PCCL_API int chunk_granularity(Algorithm algorithm, CollectiveKind kind, int ranks);

/// The least Shape::slots with which the algorithm cannot deadlock: 2 for the rings, else 1.
[[nodiscard]] PCCL_API int slots_needed(Algorithm algorithm, CollectiveKind kind);

}  // namespace pccl::schedule
