// Operations that several thread blocks share, as one of each of them.
#pragma once

#include "csrc/base/status.h"
#include "csrc/capsule/mscclpp/plan.h"

namespace pccl::capsule::mscclpp {

/// Cuts all chunks of a plan into as many that each thread block of a group has whole ones of each
/// operation that they share. kUnsupported where these are more than a capsule may have.
[[nodiscard]] Status cut_into_shares(Plan& plan);

}  // namespace pccl::capsule::mscclpp
