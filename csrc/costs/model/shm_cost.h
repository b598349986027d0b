// SPDX-License-Identifier: Apache-2.0

// Costs of a collective over shared memory, and the choice of the best algorithm.
#pragma once

#include <cstddef>
#include <vector>

#include "csrc/collective/fingerprint.h"
#include "csrc/collective/prediction.h"
#include "csrc/collective/shm_algorithm.h"
#include "csrc/costs/machine_costs.h"

namespace pccl::costs {

/// Properties of a segment that affect the choice; equal on all ranks.
struct ShmShape {
    int ranks = 1;
    std::size_t buffer_bytes = 0;
    std::size_t part_bytes = 0;
    bool reads_directly = false;
    int ranks_on_core = 1;  // the maximum number that share a core
};

struct ShmCall {
    schedule::CollectiveKind kind = schedule::CollectiveKind::kAllReduce;
    std::size_t element_bytes = 1;
    std::size_t count = 0;  // of the longest block, if all ranks have its length
    bool is_of_pairs = false;
};
[[nodiscard]] ShmCall shm_call(const Signature& call);

/// Returns the cache level of the buffers of a repeated call, for ranks that share the last-level
/// cache.
[[nodiscard]] Level level_of(const ShmCall& call, int ranks, const MachineCosts& costs);
/// Returns seconds for copying a rank's own block from its input to its output.
[[nodiscard]] double keeping(const ShmCall& call, Level level, const MachineCosts& costs);

/// Returns all algorithms that can make the call, fastest first.
[[nodiscard]] std::vector<Prediction> shm_predictions(const ShmShape& segment, const ShmCall& call,
                                                      const MachineCosts& costs);

/// Returns the plan of an algorithm.
[[nodiscard]] ShmPlan plan_on_shm(const ShmShape& segment, const ShmCall& call,
                                  ShmAlgorithm algorithm, const MachineCosts& costs);

}  // namespace pccl::costs
