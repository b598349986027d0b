// Programs of thread blocks as capsules.
#pragma once

#include <string>
#include <string_view>

#include "csrc/capsule/capsule.h"
#include "csrc/capsule/msccl/algo.h"

namespace pccl::capsule::msccl {

/// An empty `name` is made of the algorithm's. kInvalidArgument, or kUnsupported, names the place
/// of what is wrong, or cannot be said: what the verifier finds is told with that of the step.
[[nodiscard]] Result<Capsule> capsule_of(const Algo& algo, std::string_view name,
                                         const std::string& note);

/// The programs that capsule_of() speaks of where they are wrong, to be shown: not proven.
[[nodiscard]] Result<schedule::Schedule> unproven_schedule_of(const Algo& algo);

}  // namespace pccl::capsule::msccl
