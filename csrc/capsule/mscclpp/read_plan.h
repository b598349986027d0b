// SPDX-License-Identifier: Apache-2.0

// Reader of MSCCL++'s JSON plans.
#pragma once

#include <string_view>

#include <pccl/status.h>
#include "csrc/capsule/mscclpp/plan.h"

namespace pccl::capsule::mscclpp {

/// Reads text of any origin. kInvalidArgument, with line and operation: the text is no valid plan.
/// kUnsupported: capsules cannot express it. Loops of operations (`pipeline`) are expanded as one
/// iteration, which corresponds to data that one iteration processes.
[[nodiscard]] Result<MscclppPlan> read_plan(std::string_view text, std::string_view file);

}  // namespace pccl::capsule::mscclpp
