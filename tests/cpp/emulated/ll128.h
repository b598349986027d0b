// SPDX-License-Identifier: Apache-2.0

// Plan of a schedule by LL128.
#pragma once

#include "csrc/kernels/plan.h"

namespace pccl::comm {

using kernels::LaunchPlan;
using kernels::Protocol;

inline constexpr LaunchPlan kByLL128{Protocol::kLL128, 4, 192};

}  // namespace pccl::comm
