// Capsules that switch phases of the network: what a group needs to run their parts.
#pragma once

#include "csrc/base/status.h"
#include "csrc/capsule/capsule.h"
#include "csrc/comm/options.h"
#include "csrc/comm/phase/phased_group.h"
#include "csrc/schedule/catalogue.h"

namespace pccl::comm {

/// kUnsupported where the group switches no network; kInvalidArgument where that has no phase that
/// the capsule names, or no link for what a rank sends there.
[[nodiscard]] Status check_phases(const capsule::Capsule& capsule,
                                  const CommunicatorOptions& options, const PhasedGroup& group);

/// Errors as those of schedule::Catalogue::add().
[[nodiscard]] Status add_parts(const capsule::Capsule& capsule, schedule::Catalogue& catalogue);

}  // namespace pccl::comm
