// A job's secret from a file (PCCL_SECRET_FILE): for those who do not trust the rendezvous store
// with it.
#pragma once

#include <optional>
#include <string>

#include "csrc/base/status.h"
#include "csrc/transport/transport.h"

namespace pccl::bootstrap {

/// The secret of `group`: HMAC-SHA-256 of its id under the file's bytes, so that groups do not
/// share one. Errors: kInvalidArgument when the file cannot be read, is no regular file, belongs to
/// another user than this one or root, may be read by others (one of root's may be by its group),
/// or holds less than 16 bytes or more than 4 KiB.
[[nodiscard]] PCCL_API Result<transport::Secret> secret_from_file(const std::string& path,
                                                                  const transport::GroupId& group);

/// The same of PCCL_SECRET_FILE; nullopt where that is not set.
[[nodiscard]] PCCL_API Result<std::optional<transport::Secret>> job_secret(
    const transport::GroupId& group);

}  // namespace pccl::bootstrap
