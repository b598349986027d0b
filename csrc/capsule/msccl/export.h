// Capsules as MSCCL's XML.
#pragma once

#include <string>

#include "csrc/capsule/capsule.h"

namespace pccl::capsule {

/// What import_msccl() makes a capsule of with the same results. A thread block has one peer to
/// send to, one to receive from and one channel, so a lane becomes as many as it needs; and a step
/// there handles chunks that follow each other. kUnsupported names the rank, lane and step for
/// which that is not enough.
[[nodiscard]] PCCL_API Result<std::string> export_msccl(const Capsule& capsule);

}  // namespace pccl::capsule
