// SPDX-License-Identifier: Apache-2.0

// Export of capsules as MSCCL's XML.
#pragma once

#include <string>

#include "csrc/capsule/capsule.h"

namespace pccl::capsule {

/// Returns XML from which import_msccl() makes a capsule with the same results. A thread block has
/// one peer for sends, one for receives and one channel, so a lane becomes several thread blocks if
/// necessary; a step there handles consecutive chunks. kUnsupported: a step does not fit this
/// model; the message contains its rank, lane and step.
[[nodiscard]] PCCL_API Result<std::string> export_msccl(const VerifiedCapsule& capsule);

}  // namespace pccl::capsule
