// The JSON of MSCCL++'s plans.
#pragma once

#include <string_view>

#include "csrc/base/status.h"
#include "csrc/capsule/mscclpp/plan.h"

namespace pccl::capsule::mscclpp {

/// Reads text of any origin. kInvalidArgument with line and operation for what is no plan,
/// kUnsupported for what it says that capsules cannot. Loops of operations (`pipeline`) are written
/// out as one turn, which is how a plan runs on data that one turn takes.
[[nodiscard]] Result<Plan> read_plan(std::string_view text, std::string_view file);

}  // namespace pccl::capsule::mscclpp
