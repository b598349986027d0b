// SPDX-License-Identifier: Apache-2.0

// Cost of a collective with a root over sockets.
//
// A root may call repeatedly, so that a call takes as long as the busiest rank's own messages. Or
// it works between calls, and all wait until the last rank has its data, or the root has the data
// of the last rank. The model assumes half of the calls of either kind.
#pragma once

#include "csrc/costs/model/traffic.h"
#include "csrc/schedule/source.h"

namespace pccl::costs {

struct RootedCall {
    int ranks = 1;
    double length = 0;  // bytes of a block
    double windows = 1;
    /// Cost of the first window if the root does not wait, otherwise of all windows.
    schedule::Cost cost{};
    /// Whether a rank that has sent a window starts the next one while others are still busy with
    /// it.
    bool goes_on = false;
};

/// Returns seconds.
[[nodiscard]] double seconds_with_root(const RootedCall& call, const LinkModel& links,
                                       const Traffic& traffic);

/// Returns the cost of a link when one of two children waits for the other.
[[nodiscard]] LinkCost with_two_children(LinkCost link);

}  // namespace pccl::costs
