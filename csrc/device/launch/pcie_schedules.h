// SPDX-License-Identifier: Apache-2.0

// Schedules for GPUs whose messages go over PCIe, through host memory or from GPU to GPU.
#pragma once

#include "csrc/collective/collective.h"
#include "csrc/schedule/source.h"

namespace pccl::device {

/// Returns the built-in schedule for longer blocks among `ranks` GPUs. It moves each byte over PCIe
/// as seldom as possible, and in few hops, each of which costs about 10 us.
[[nodiscard]] PCCL_API Result<schedule::SourcePtr> schedule_over_pcie(CollectiveKind kind,
                                                                      int ranks);

/// Returns whether it is an average of integers, which schedules would wrap.
[[nodiscard]] bool averages_integers(const Collective& collective);

}  // namespace pccl::device
