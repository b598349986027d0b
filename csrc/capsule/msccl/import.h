// SPDX-License-Identifier: Apache-2.0

// Import of MSCCL's programs as capsules.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "csrc/capsule/capsule.h"
#include "csrc/capsule/msccl/algo.h"

namespace pccl::capsule {

/// Returns the capsule of MSCCL's XML, of any origin. `file` names the text in error messages; an
/// empty `name` is derived from the algorithm's. `custom` is valid for coll="custom" only. LL,
/// LL128 and Simple become the protocol that the capsule requests for GPUs. kInvalidArgument
/// (faulty) and kUnsupported (not expressible) contain the line; faults that the verifier finds
/// contain the line of the step.
[[nodiscard]] PCCL_API Result<VerifiedCapsule> import_msccl(
    std::string_view xml, std::string_view file, std::string_view name = {},
    const std::optional<msccl::AlgoCollective>& custom = {});

/// Returns the programs to which an error of import_msccl() refers, for display. They are not
/// verified and must not run.
[[nodiscard]] PCCL_API Result<schedule::Schedule> unproven_msccl(std::string_view xml,
                                                                 std::string_view file);

}  // namespace pccl::capsule
