// SPDX-License-Identifier: Apache-2.0

// Status report of a process for onlookers (transport/control/inquiry.h), as JSON of bounded
// length, and the client of `pccl status` that requests it. The acceptor thread makes it, so a
// process answers whatever its user's threads do.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/runtime/participant.h"
#include "csrc/transport/control/inquiry.h"

namespace pccl::runtime {

/// Returns the status as JSON. Without a group in `question`, it contains for each group of the
/// process a part of its flight record (docs/reference/failure.md): its unfinished and its last
/// collectives, "key", "awaited", "broken", "whole" and "usage". With a group, it contains its
/// "members", each with "rank", "host", "pid", "doors".
///
/// "next" is the argument for the following question, or null.
[[nodiscard]] std::string status_report(std::span<const std::shared_ptr<Participant>> participants,
                                        const transport::StatusQuestion& question);

/// Returns the status_report() of the process that listens at `door`, an address as for
/// sys::Address::parse(). `group` contains the bytes of a GroupId, or nothing; `first` is as in
/// transport::StatusQuestion. Proves the job's secret of PCCL_SECRET_FILE, where that is set.
/// Returns kInvalidArgument where the process has another secret, kPeerLost where no process
/// listens, kTimeout where it does not answer.
[[nodiscard]] PCCL_API Result<std::string> request_status(const std::string& door,
                                                          const std::string& group,
                                                          std::uint32_t first, Deadline deadline);

}  // namespace pccl::runtime
