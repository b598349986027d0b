// SPDX-License-Identifier: Apache-2.0

// Checks that a network has the links on which a capsule sends.
#pragma once

#include <string>

#include <pccl/status.h>
#include "csrc/capsule/capsule.h"
#include "csrc/comm/options.h"
#include "csrc/comm/phase/phased_group.h"
#include "csrc/schedule/source.h"

namespace pccl::comm {

/// Returns kInvalidArgument naming the first link that is missing from `links`, the links of
/// `phase`.
[[nodiscard]] Status check_links(const schedule::ScheduleSource& source,
                                 const schedule::Shape& shape, const schedule::LinkGraph& links,
                                 const std::string& phase);

/// Checks the capsule against the current phase of the group. Returns ok when the group is in no
/// phase, as without a cluster.
[[nodiscard]] Status check_present_links(const capsule::Capsule& capsule,
                                         const CommunicatorOptions& options,
                                         const PhasedGroup& group);

}  // namespace pccl::comm
