// Every generator: one function for each algorithm and collective, for 2 ranks and more.
//
// None writes the input of its caller, and each is right whether input and output are one memory or
// two (Placement in verifier.h), all_to_all only for two. They need one slot, the rings two.
#pragma once

#include "csrc/schedule/generators/builder.h"

namespace pccl::schedule {

[[nodiscard]] Program ring_all_reduce(const Member& me);
[[nodiscard]] Program ring_all_gather(const Member& me);
[[nodiscard]] Program ring_reduce_scatter(const Member& me);

[[nodiscard]] Program chain_broadcast(const Member& me);
[[nodiscard]] Program chain_reduce(const Member& me);

[[nodiscard]] Program double_tree_all_reduce(const Member& me);
[[nodiscard]] Program double_tree_broadcast(const Member& me);
[[nodiscard]] Program double_tree_reduce(const Member& me);

[[nodiscard]] Program recursive_doubling_all_reduce(const Member& me);
[[nodiscard]] Program recursive_doubling_all_gather(const Member& me);

[[nodiscard]] Program recursive_halving_all_reduce(const Member& me);
[[nodiscard]] Program recursive_halving_reduce_scatter(const Member& me);

[[nodiscard]] Program bruck_all_gather(const Member& me);
[[nodiscard]] Program bruck_all_to_all(const Member& me);

[[nodiscard]] Program one_shot_all_reduce(const Member& me);
[[nodiscard]] Program one_shot_all_gather(const Member& me);
[[nodiscard]] Program one_shot_reduce_scatter(const Member& me);
[[nodiscard]] Program one_shot_broadcast(const Member& me);
[[nodiscard]] Program one_shot_reduce(const Member& me);
[[nodiscard]] Program one_shot_gather(const Member& me);
[[nodiscard]] Program one_shot_scatter(const Member& me);
[[nodiscard]] Program one_shot_all_to_all(const Member& me);

[[nodiscard]] Program two_shot_all_reduce(const Member& me);

[[nodiscard]] Program binomial_broadcast(const Member& me);
[[nodiscard]] Program binomial_reduce(const Member& me);
[[nodiscard]] Program binomial_gather(const Member& me);
[[nodiscard]] Program binomial_scatter(const Member& me);

[[nodiscard]] Program pairwise_all_to_all(const Member& me);

[[nodiscard]] Program pat_all_reduce(const Member& me);
[[nodiscard]] Program pat_all_gather(const Member& me);
[[nodiscard]] Program pat_reduce_scatter(const Member& me);

}  // namespace pccl::schedule
