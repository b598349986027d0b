// SPDX-License-Identifier: Apache-2.0

// Plans of few threads, which an emulated GPU runs in little time.
#pragma once

#include "csrc/kernels/plan.h"

namespace pccl::kernels {

inline constexpr LaunchPlan kFewThreads{.protocol = Protocol::kDirect, .blocks = 2, .threads = 64};
inline constexpr LaunchPlan kFewThreadsStaggered{
    .protocol = Protocol::kStaggered, .blocks = 2, .threads = 64};

}  // namespace pccl::kernels
