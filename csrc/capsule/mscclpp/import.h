// SPDX-License-Identifier: Apache-2.0

// Import of MSCCL++'s execution plans as capsules.
#pragma once

#include <string_view>

#include "csrc/capsule/capsule.h"

namespace pccl::capsule {

/// Returns the capsule of an execution plan in JSON, of any origin. `file` names the text in error
/// messages; an empty `name` is derived from the plan's. kInvalidArgument (faulty) and kUnsupported
/// (not expressible) contain the line, GPU, thread block and operation.
[[nodiscard]] PCCL_API Result<VerifiedCapsule> import_mscclpp(std::string_view json,
                                                              std::string_view file,
                                                              std::string_view name = {});

/// Returns the programs to which an error of import_mscclpp() refers, for display. They are not
/// verified and must not run.
[[nodiscard]] PCCL_API Result<schedule::Schedule> unproven_mscclpp(std::string_view json,
                                                                   std::string_view file);

}  // namespace pccl::capsule
