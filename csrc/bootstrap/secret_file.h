// SPDX-License-Identifier: Apache-2.0

// Secret of a job from a file (PCCL_SECRET_FILE), for jobs that do not trust the rendezvous store
// with it.
#pragma once

#include <optional>
#include <string>

#include <pccl/status.h>
#include "csrc/transport/transport.h"

namespace pccl::bootstrap {

/// Returns the secret of `group`: HMAC-SHA-256 of its id under the file's bytes, so that groups
/// have different secrets. Returns kInvalidArgument when the file is unreadable, is no regular
/// file, belongs to a user other than this one or root, is readable by others (a file of root may
/// be readable by its group), or has less than 16 bytes or more than 4 KiB.
[[nodiscard]] PCCL_API Result<transport::Secret> secret_from_file(const std::string& path,
                                                                  const transport::GroupId& group);

/// Returns the secret from PCCL_SECRET_FILE; nullopt where that is not set.
[[nodiscard]] PCCL_API Result<std::optional<transport::Secret>> job_secret(
    const transport::GroupId& group);

}  // namespace pccl::bootstrap
