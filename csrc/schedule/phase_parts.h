// SPDX-License-Identifier: Apache-2.0

// Split of a schedule that switches phases of the network into one part per phase.
#pragma once

#include <string>
#include <vector>

#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

/// Part of a schedule from one switch to the next.
struct PhasePart {
    std::string phase;              // phase in which the part runs; empty: the current phase
    std::vector<Program> programs;  // one for each rank, with the lanes of the whole schedule

    /// Returns whether no rank has a step in this part.
    [[nodiscard]] bool is_empty() const;
};

/// Splits a verified schedule. Returns one part more than there are switches; the first precedes
/// all switches.
[[nodiscard]] std::vector<PhasePart> parts_of(const Schedule& verified);

}  // namespace pccl::schedule
