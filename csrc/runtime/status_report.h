// What a process tells onlookers (transport/control/onlooker.h), as JSON of bounded length. The
// acceptor thread makes it, so that a process answers whatever its user does.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "csrc/runtime/participant.h"
#include "csrc/transport/control/onlooker.h"

namespace pccl::runtime {

/// Of the groups that the process is in, a part of a flight record (docs/failure.md): of each group
/// what is under way and the last collectives; besides "key", "awaited", "broken" and "whole".
/// Else, of the group that `question` names, "members": "rank", "host", "pid", "doors".
///
/// "next" is what to ask for after this, or null.
[[nodiscard]] std::string status_report(std::span<const std::shared_ptr<Participant>> participants,
                                        const transport::StatusQuestion& question);

}  // namespace pccl::runtime
