// Whether a capsule may be used here.
#pragma once

#include "csrc/base/status.h"
#include "csrc/capsule/capsule_file.h"

namespace pccl::capsule {

/// kInvalidArgument where PCCL_TRUSTED_KEYS names what cannot be used. Groups begin with it: a file
/// that is missing must not be found out with the first capsule.
[[nodiscard]] PCCL_API Status check_trust();

/// ok where PCCL_TRUSTED_KEYS is unset, or one of its keys has signed the file; else
/// kInvalidArgument. Errors of that file, too.
[[nodiscard]] PCCL_API Status check_trusted(const CapsuleFile& file);

}  // namespace pccl::capsule
