// Whether a capsule may be used here.
#pragma once

#include "csrc/base/status.h"
#include "csrc/capsule/capsule.h"

namespace pccl::capsule {

/// ok where PCCL_TRUSTED_KEYS is unset, or one of its keys has signed the capsule; else
/// kInvalidArgument. Errors of that file, too.
[[nodiscard]] PCCL_API Status check_trusted(const Capsule& capsule);

}  // namespace pccl::capsule
