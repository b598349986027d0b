// SPDX-License-Identifier: Apache-2.0

// Costs of sources that are made for one shape. All programs are counted on first use.
#pragma once

#include <functional>
#include <mutex>
#include <utility>

#include "csrc/schedule/step_counts.h"

namespace pccl::schedule {

/// Cost that is counted lazily. Thread-safe.
class CountedCost {
   public:
    /// Counts the programs for `shape`; `rounds` has the meaning of Cost::rounds.
    CountedCost(const Shape& shape, long long rounds, std::function<Program(Rank)> program)
        : shape_(shape), rounds_(rounds), program_(std::move(program)) {}

    int longest_message() { return counts().longest_message; }
    Cost of(double block_bytes) {
        return scaled(cost_of(counts(), rounds_, shape_.chunks), block_bytes);
    }

   private:
    const StepCounts& counts() {
        std::call_once(counted_, [this] {
            for (Rank rank = 0; rank < shape_.ranks; ++rank) counts_.include(program_(rank));
        });
        return counts_;
    }

    const Shape shape_;
    const long long rounds_;
    const std::function<Program(Rank)> program_;
    std::once_flag counted_;
    StepCounts counts_;
};

}  // namespace pccl::schedule
