// SPDX-License-Identifier: Apache-2.0

// Trust in capsules on this host.
#pragma once

#include <pccl/status.h>
#include "csrc/capsule/capsule_file.h"

namespace pccl::capsule {

/// Checks PCCL_TRUSTED_KEYS. kInvalidArgument: its file is unusable. Groups call it at their
/// creation, so that a missing file is reported before the first capsule is loaded.
[[nodiscard]] PCCL_API Status check_trust();

/// Checks a capsule's signer. Returns ok if PCCL_TRUSTED_KEYS is unset, or if one of its keys has
/// signed the file; otherwise kInvalidArgument, also for an unusable key file.
[[nodiscard]] PCCL_API Status check_trusted(const CapsuleFile& file);

}  // namespace pccl::capsule
