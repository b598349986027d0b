// SPDX-License-Identifier: Apache-2.0

// Text form of the links over which a schedule sends, for the manifest.
#pragma once

#include <string>

#include "csrc/schedule/schedule.h"

namespace pccl::capsule {

/// Returns the links. "+1 -2": every rank sends to the next rank and to the rank two before it,
/// cyclically. "^1 ^4": to the ranks whose numbers differ in these bits. "0->1 2->0": individual
/// links. "5000 links": more than the list may have. Empty if every rank sends to every other, if
/// none sends, and for schedules that switch phases, because each phase has its own links.
[[nodiscard]] std::string links_text(const schedule::Schedule& schedule);

}  // namespace pccl::capsule
