// SPDX-License-Identifier: Apache-2.0

// Status report of a process for onlookers (transport/control/onlooker.h), as JSON of bounded
// length. The acceptor thread makes it, so a process answers whatever its user's threads do.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "csrc/runtime/participant.h"
#include "csrc/transport/control/onlooker.h"

namespace pccl::runtime {

/// Returns the status as JSON. Without a group in `question`, it contains for each group of the
/// process a part of its flight record (docs/reference/failure.md): its unfinished and its last
/// collectives, "key", "awaited", "broken" and "whole". With a group, it contains its "members",
/// each with "rank", "host", "pid", "doors".
///
/// "next" is the argument for the following question, or null.
[[nodiscard]] std::string status_report(std::span<const std::shared_ptr<Participant>> participants,
                                        const transport::StatusQuestion& question);

}  // namespace pccl::runtime
