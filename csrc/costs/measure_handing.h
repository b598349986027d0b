// What it costs to hand something to another thread: over a cache line, or by waking it.
#pragma once

#include "csrc/base/clock.h"
#include "csrc/costs/machine_costs.h"
#include "csrc/costs/partner.h"

namespace pccl::costs {

/// Binds `partner` to another core than this thread's, at a middling distance, and measures `beat`;
/// false, and nothing, where there is none.
[[nodiscard]] bool meet_on_another_core(Partner& partner, MachineCosts& into, Deadline deadline);
/// On the partner's core.
void measure_wake(Partner& partner, MachineCosts& into, Deadline deadline);
/// Binds `partner` to this thread's core.
void measure_shared_core(Partner& partner, MachineCosts& into, Deadline deadline);

}  // namespace pccl::costs
