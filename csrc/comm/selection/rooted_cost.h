// What a collective with a root takes over sockets.
//
// A root may make call after call, which take as long as the busiest rank's own messages; or it has
// other work between calls, and all wait until the last rank has what was sent, or the root what
// the last one sent. Half of the calls are taken for such ones.
#pragma once

#include "csrc/schedule/simulator/link_model.h"
#include "csrc/schedule/source.h"

namespace pccl::comm {

struct RootedCall {
    int ranks = 1;
    double length = 0;  // bytes of a block
    double windows = 1;
    schedule::Cost cost{};  // of the first window where the root goes on, else of all
    /// Whether a rank that has sent a window goes on with the next one while others are still busy
    /// with it.
    bool goes_on = false;
};

/// Seconds.
[[nodiscard]] double seconds_with_root(const RootedCall& call, const schedule::LinkModel& links,
                                       const schedule::Traffic& traffic);

/// Of two children one waits for the other.
[[nodiscard]] schedule::LinkCost with_two_children(schedule::LinkCost link);

}  // namespace pccl::comm
