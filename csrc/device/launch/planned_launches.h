// How a collective of GPUs would be launched, for people who ask: by what launches it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "csrc/collective/collective.h"
#include "csrc/kernels/plan.h"

namespace pccl::device {

struct PlannedLaunch {
    std::string kernel;     // "all_reduce"; "copy engines"; "program of ring"
    std::size_t bytes = 0;  // of the longest block
    kernels::Plan plan;
};

/// "words", "direct", "turns" or "engines", as docs/gpus.md explains them.
[[nodiscard]] PCCL_API std::string_view name_of(kernels::Protocol protocol);

/// The launches of one collective of blocks of `bytes` on all GPUs, in their order: two of a large
/// all_reduce.
[[nodiscard]] PCCL_API std::vector<PlannedLaunch> planned_launches(CollectiveKind kind,
                                                                   std::size_t bytes,
                                                                   const kernels::Gpus& gpus,
                                                                   bool prefers_engines = false);

}  // namespace pccl::device
