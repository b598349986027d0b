// SPDX-License-Identifier: Apache-2.0

// Schedules that no generator makes.
#pragma once

#include "csrc/schedule/schedule.h"

namespace pccl::schedule::testing {

/// A ring all_reduce of n chunks in which receiving and sending are lanes of their own, tied
/// together by dependencies: one slot is enough, and every dependency is needed. ranks >= 2.
Schedule two_lane_ring_all_reduce(int ranks);

}  // namespace pccl::schedule::testing
