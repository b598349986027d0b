// How a collective of GPUs would be launched, for people who ask: by what launches it.
#pragma once

#include <string>
#include <vector>

#include "csrc/collective/collective.h"
#include "csrc/device/launch/preferences.h"
#include "csrc/kernels/plan.h"

namespace pccl::device {

struct PlannedLaunch {
    std::string kernel;     // "all_reduce"; "copy engines"; "program of ring"
    std::size_t bytes = 0;  // of the longest block
    kernels::Plan plan;
    std::string why;  // for people: what made the choice, of the kernel, too
};

/// The launches of one collective of blocks of `bytes` on all GPUs, in their order: two of a large
/// all_reduce.
[[nodiscard]] PCCL_API std::vector<PlannedLaunch> planned_launches(
    CollectiveKind kind, std::size_t bytes, const kernels::Gpus& gpus,
    const Preferences& preferences = {});

}  // namespace pccl::device
