// Measures what the steps of a collective cost on this machine.
#pragma once

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/costs/machine_costs.h"

namespace pccl::costs {

/// In about `budget`, on two cores that this process may use; on one where it may use no other. The
/// last cache takes its least number of turns also when the time is over: with 26 ms all took 27 to
/// 33 on Xeons whose cores have 2 MiB each. What could not be measured, or only so that it cannot
/// be, keeps its default. Leaves machine, boot and date to others.
[[nodiscard]] PCCL_API MachineCosts measure(Duration budget = std::chrono::milliseconds(23));

}  // namespace pccl::costs
