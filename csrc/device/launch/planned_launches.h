// SPDX-License-Identifier: Apache-2.0

// Preview of the launches of a GPU collective, for users. The code that launches computes it.
#pragma once

#include <string>
#include <vector>

#include "csrc/collective/collective.h"
#include "csrc/device/launch/preferences.h"
#include "csrc/kernels/plan.h"

namespace pccl::device {

struct PlannedLaunch {
    std::string kernel;     // "all_reduce"; "copy engines"; "pairs"; "program of ring"
    std::size_t bytes = 0;  // of the longest block
    kernels::LaunchPlan plan;
    std::string why;  // reason for the plan and the kernel, for users
};

/// Returns the launches of one collective of blocks of `bytes` on all GPUs, in order; a large
/// all_reduce has two.
[[nodiscard]] PCCL_API std::vector<PlannedLaunch> planned_launches(
    CollectiveKind kind, std::size_t bytes, const kernels::Gpus& gpus,
    const Preferences& preferences = {});

}  // namespace pccl::device
