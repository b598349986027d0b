// What a collective over a board costs, and so which way is best.
#pragma once

#include <cstddef>
#include <vector>

#include "csrc/collective/fingerprint.h"
#include "csrc/collective/prediction.h"
#include "csrc/comm/board/board_algorithm.h"
#include "csrc/costs/machine_costs.h"

namespace pccl::comm {

/// What matters of a board for the choice; the same on all ranks.
struct BoardShape {
    int ranks = 1;
    std::size_t half_bytes = 0;
    std::size_t part_bytes = 0;
    bool reads_directly = false;
    int ranks_on_core = 1;  // the most that share one
};

struct BoardCall {
    schedule::CollectiveKind kind = schedule::CollectiveKind::kAllReduce;
    std::size_t element_bytes = 1;
    std::size_t count = 0;  // of the longest block, as far as all ranks know it
    bool is_of_pairs = false;
};
[[nodiscard]] BoardCall board_call(const Signature& call);

/// Where the buffers of a call lie that is made again and again, by ranks that share the last
/// cache.
[[nodiscard]] costs::Level level_of(const BoardCall& call, int ranks,
                                    const costs::MachineCosts& costs);
/// Seconds for a rank's own block, from its input to its output.
[[nodiscard]] double keeping(const BoardCall& call, costs::Level level,
                             const costs::MachineCosts& costs);

/// Every algorithm that can make the call, best first.
[[nodiscard]] std::vector<Prediction> board_predictions(const BoardShape& board,
                                                        const BoardCall& call,
                                                        const costs::MachineCosts& costs);

/// The cut of an algorithm.
[[nodiscard]] BoardPlan plan_on_board(const BoardShape& board, const BoardCall& call,
                                      BoardAlgorithm algorithm, const costs::MachineCosts& costs);

}  // namespace pccl::comm
