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
/// "members", each with "rank", "host", "pid", "doors"; or, if these are the subject, the "windows"
/// of the counters' history that do not end before the second "first" since 1970.
///
/// "next" is the argument for the following question, or null.
[[nodiscard]] std::string status_report(std::span<const std::shared_ptr<Participant>> participants,
                                        const transport::StatusQuestion& question);

/// Returns the status_report() of the process that listens at `door`, an address as for
/// sys::Address::parse(). Proves the job's secret of PCCL_SECRET_FILE, where that is set.
/// Returns kInvalidArgument where the process has another secret, kPeerLost where no process
/// listens, kTimeout where it does not answer.
[[nodiscard]] PCCL_API Result<std::string> request_status(const std::string& door,
                                                          const transport::StatusQuestion& question,
                                                          Deadline deadline);
/// Returns the group that has these bytes; the zero group for none. kInvalidArgument for another
/// number of bytes.
[[nodiscard]] PCCL_API Result<transport::GroupId> group_of(const std::string& bytes);

}  // namespace pccl::runtime
