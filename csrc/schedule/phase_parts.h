// A schedule that switches phases of the network, as what it does in one phase each.
#pragma once

#include <string>
#include <vector>

#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

/// From one switch to the next.
struct PhasePart {
    std::string phase;              // in which it runs; empty: in that which is there
    std::vector<Program> programs;  // one for each rank, with the lanes of the whole

    /// Whether no rank does anything in it.
    [[nodiscard]] bool is_empty() const;
};

/// Of a verified schedule: one more than it has switches, the first before all of them.
[[nodiscard]] std::vector<PhasePart> parts_of(const Schedule& verified);

}  // namespace pccl::schedule
