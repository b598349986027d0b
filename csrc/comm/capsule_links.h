// Whether a network has the links along which a capsule sends.
#pragma once

#include <string>

#include "csrc/base/status.h"
#include "csrc/capsule/capsule.h"
#include "csrc/comm/options.h"
#include "csrc/comm/phase/phased_group.h"
#include "csrc/schedule/source.h"

namespace pccl::comm {

/// kInvalidArgument names the first link that `phase`, which has `links`, has not.
[[nodiscard]] Status check_links(const schedule::ScheduleSource& source,
                                 const schedule::Shape& shape, const schedule::LinkGraph& links,
                                 const std::string& phase);

/// The same of the phase in which the group is; ok where it is in none, as on no cluster.
[[nodiscard]] Status check_present_links(const capsule::Capsule& capsule,
                                         const CommunicatorOptions& options,
                                         const PhasedGroup& group);

}  // namespace pccl::comm
