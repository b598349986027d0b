// SPDX-License-Identifier: Apache-2.0

// Conversion of thread-block programs to capsules.
#pragma once

#include <string>
#include <string_view>

#include "csrc/capsule/capsule.h"
#include "csrc/capsule/msccl/algo.h"

namespace pccl::capsule::msccl {

/// Converts an algorithm; an empty `name` is derived from the algorithm's. kInvalidArgument
/// (faulty) and kUnsupported (not expressible) contain the place in the file; faults that the
/// verifier finds contain the place of the step.
[[nodiscard]] Result<VerifiedCapsule> capsule_of(const Algo& algo, std::string_view name,
                                                 const std::string& note);

/// Returns the unverified programs to which errors of capsule_of() refer, for display.
[[nodiscard]] Result<schedule::Schedule> unproven_schedule_of(const Algo& algo);

}  // namespace pccl::capsule::msccl
