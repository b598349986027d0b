// What a collective over shared memory costs, and so which way is best.
#pragma once

#include <cstddef>
#include <vector>

#include "csrc/collective/fingerprint.h"
#include "csrc/collective/prediction.h"
#include "csrc/comm/shm/shm_algorithm.h"
#include "csrc/costs/machine_costs.h"

namespace pccl::comm {

/// What matters of a segment for the choice; the same on all ranks.
struct ShmShape {
    int ranks = 1;
    std::size_t buffer_bytes = 0;
    std::size_t part_bytes = 0;
    bool reads_directly = false;
    int ranks_on_core = 1;  // the most that share one
};

struct ShmCall {
    schedule::CollectiveKind kind = schedule::CollectiveKind::kAllReduce;
    std::size_t element_bytes = 1;
    std::size_t count = 0;  // of the longest block, as far as all ranks know it
    bool is_of_pairs = false;
};
[[nodiscard]] ShmCall shm_call(const Signature& call);

/// Where the buffers of a call lie that is made again and again, by ranks that share the last
/// cache.
[[nodiscard]] costs::Level level_of(const ShmCall& call, int ranks,
                                    const costs::MachineCosts& costs);
/// Seconds for a rank's own block, from its input to its output.
[[nodiscard]] double keeping(const ShmCall& call, costs::Level level,
                             const costs::MachineCosts& costs);

/// Every algorithm that can make the call, best first.
[[nodiscard]] std::vector<Prediction> shm_predictions(const ShmShape& segment, const ShmCall& call,
                                                      const costs::MachineCosts& costs);

/// The cut of an algorithm.
[[nodiscard]] ShmPlan plan_on_shm(const ShmShape& segment, const ShmCall& call,
                                  ShmAlgorithm algorithm, const costs::MachineCosts& costs);

}  // namespace pccl::comm
