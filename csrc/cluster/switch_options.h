// How switches are changed: what bounds it, and what the caller does on the way.
#pragma once

#include <chrono>
#include <functional>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/cluster/progress.h"
#include "csrc/cluster/scatter.h"

namespace pccl::cluster {

struct SwitchOptions {
    Duration step_timeout = std::chrono::seconds(5);  // of one step, on all switches
    /// Once passed, nothing more is begun: what is not confirmed by then is refused, or rolled
    /// back.
    Deadline deadline = Deadline::never();
    bool dry_run = false;  // no further than prepare
    /// Take what the switches show for what is meant, whatever phase that is.
    bool adopt = false;
    /// Throw away what others have left in the candidates of switches, instead of refusing; the
    /// report tells what that was.
    bool discard_candidate = false;
    /// Called when all are prepared and none has committed; an error ends the transaction.
    std::function<Status()> drain = {};
    /// Asked between steps, and while those last that change nothing; an error is a failure of
    /// that step.
    Interrupted interrupted = {};
    Watch watch = {};
    const Clock* clock = &system_clock();  // for settling, and for waiting on confirm timeouts
};

}  // namespace pccl::cluster
