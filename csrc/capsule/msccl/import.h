// Programs of MSCCL as capsules.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "csrc/capsule/capsule.h"
#include "csrc/capsule/msccl/algo.h"

namespace pccl::capsule {

/// Returns the capsule of MSCCL's XML, of any origin. `file` stands for the text in messages; an
/// empty `name` is made of the algorithm's. `custom` is given for coll="custom" alone. LL, LL128
/// and Simple are what the capsule asks GPUs for. kInvalidArgument, or kUnsupported, names the line
/// of what is wrong, or cannot be said: what the verifier finds is told with the line of the step.
[[nodiscard]] PCCL_API Result<Capsule> import_msccl(
    std::string_view xml, std::string_view file, std::string_view name = {},
    const std::optional<msccl::CustomCollective>& custom = {});

/// Returns the programs that an error of import_msccl() speaks of, to be shown beside it: they need
/// not be right, and must not be run.
[[nodiscard]] PCCL_API Result<schedule::Schedule> unproven_msccl(std::string_view xml,
                                                                 std::string_view file);

}  // namespace pccl::capsule
