// Execution plans of MSCCL++ as capsules.
#pragma once

#include <string_view>

#include "csrc/capsule/capsule.h"

namespace pccl::capsule {

/// The capsule of an execution plan in JSON, of any origin. `file` stands for the text in messages;
/// an empty `name` is made of the plan's. kInvalidArgument, or kUnsupported, names the line,
/// the GPU, the thread block and the operation of what is wrong, or cannot be said.
[[nodiscard]] PCCL_API Result<Capsule> import_mscclpp(std::string_view json, std::string_view file,
                                                      std::string_view name = {});

/// The programs that an error of import_mscclpp() speaks of, to be shown beside it: they need not
/// be right, and must not be run.
[[nodiscard]] PCCL_API Result<schedule::Schedule> unproven_mscclpp(std::string_view json,
                                                                   std::string_view file);

}  // namespace pccl::capsule
