// SPDX-License-Identifier: Apache-2.0

// Checks that a network has the phases and the links that a capsule needs, and the parts of
// capsules that switch phases.
#pragma once

#include <pccl/status.h>
#include "csrc/capsule/capsule.h"
#include "csrc/comm/group/options.h"
#include "csrc/comm/phase/phased_group.h"
#include "csrc/schedule/catalogue.h"

namespace pccl::comm {

/// Returns kUnsupported if the group switches no network; kInvalidArgument if the network lacks a
/// phase that the capsule names, or a link that a rank needs there.
[[nodiscard]] Status check_phases(const capsule::VerifiedCapsule& capsule,
                                  const CommunicatorImplOptions& options, const PhasedGroup& group);

/// Checks the capsule against the current phase of the group. Returns ok when the group is in no
/// phase, as without a cluster.
[[nodiscard]] Status check_present_links(const capsule::VerifiedCapsule& capsule,
                                         const CommunicatorImplOptions& options,
                                         const PhasedGroup& group);

/// Adds the parts of a capsule to a catalogue. Errors are those of schedule::Catalogue::add().
[[nodiscard]] Status add_parts(const capsule::VerifiedCapsule& capsule,
                               schedule::Catalogue& catalogue);

}  // namespace pccl::comm
