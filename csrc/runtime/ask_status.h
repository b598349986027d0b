// SPDX-License-Identifier: Apache-2.0

// Client of `pccl status`: queries a process of any job of this user, or of a job whose secret it
// has.
#pragma once

#include <cstdint>
#include <string>

#include <pccl/deadline.h>
#include <pccl/status.h>

namespace pccl::runtime {

/// Returns the status_report() of the process that listens at `door`, an address as for
/// sys::Address::parse(). `group` contains the bytes of a GroupId, or nothing; `first` is as in
/// transport::StatusQuestion. Proves the job's secret of PCCL_SECRET_FILE, where that is set.
/// Returns kInvalidArgument where the process has another secret, kPeerLost where no process
/// listens, kTimeout where it does not answer.
[[nodiscard]] PCCL_API Result<std::string> ask_status(const std::string& door,
                                                      const std::string& group, std::uint32_t first,
                                                      Deadline deadline);

}  // namespace pccl::runtime
