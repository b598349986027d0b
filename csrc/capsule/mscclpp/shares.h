// SPDX-License-Identifier: Apache-2.0

// Split of operations that several thread blocks share into one operation for each.
#pragma once

#include <pccl/status.h>
#include "csrc/capsule/mscclpp/plan.h"

namespace pccl::capsule::mscclpp {

/// Cuts all chunks of a plan into smaller chunks, so that each thread block of a group has whole
/// chunks of each shared operation. kUnsupported: a capsule cannot have that many chunks.
[[nodiscard]] Status cut_into_shares(Plan& plan);

}  // namespace pccl::capsule::mscclpp
