// What TCP costs on loopback.
#pragma once

#include "csrc/base/clock.h"
#include "csrc/costs/machine_costs.h"
#include "csrc/costs/partner.h"

namespace pccl::costs {

/// `partner` runs on another core. kUnavailable where there is no loopback.
[[nodiscard]] Status measure_tcp(Partner& partner, MachineCosts& into, Deadline deadline);

}  // namespace pccl::costs
