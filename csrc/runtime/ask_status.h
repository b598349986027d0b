// What `pccl status` asks a process of any job of this user, or of one whose secret it has.
#pragma once

#include <cstdint>
#include <string>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"

namespace pccl::runtime {

/// The status_report() of the process that listens at `door`, an address as sys::Address::parse()
/// takes it. `group`: the bytes of a GroupId, or none; `first`: as in transport::StatusQuestion.
/// Proves the job's secret of PCCL_SECRET_FILE, where that is set; kInvalidArgument where the
/// process has another, kPeerLost where nobody listens, kTimeout where it is silent.
[[nodiscard]] PCCL_API Result<std::string> ask_status(const std::string& door,
                                                      const std::string& group, std::uint32_t first,
                                                      Deadline deadline);

}  // namespace pccl::runtime
