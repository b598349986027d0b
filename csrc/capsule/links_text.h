// The links over which a schedule sends, as a manifest has them.
#pragma once

#include <string>

#include "csrc/schedule/schedule.h"

namespace pccl::capsule {

/// "+1 -2": every rank sends to the next one, and to that two before it, round the ranks. "^1 ^4":
/// to those with these bits of their numbers flipped. "0->1 2->0": each link. "5000 links": more
/// than are listed. Empty where every rank sends to every other, or none does, and for schedules
/// that switch phases, of which each has links of its own.
[[nodiscard]] std::string links_text(const schedule::Schedule& schedule);

}  // namespace pccl::capsule
