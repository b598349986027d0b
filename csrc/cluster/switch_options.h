// SPDX-License-Identifier: Apache-2.0

// Options of a switch of phases: its limits, and the caller's actions during it.
#pragma once

#include <chrono>
#include <functional>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/cluster/progress.h"
#include "csrc/cluster/scatter.h"

namespace pccl::cluster {

struct SwitchOptions {
    Duration step_timeout = std::chrono::seconds(5);  // per step, on all switches
    /// No step begins after the deadline: an unconfirmed transaction is then refused or rolled
    /// back.
    Deadline deadline = Deadline::never();
    bool dry_run = false;  // stops after prepare
    /// Accepts the circuits that the switches show as the origin, even if they are no phase.
    bool adopt = false;
    /// Discards edits of others in the candidates of switches, instead of refusing; the report
    /// contains them.
    bool discard_candidate = false;
    /// Called when all are prepared and none has committed; an error ends the transaction.
    std::function<Status()> drain = {};
    /// Called between steps, and during steps that change nothing; an error makes the step fail.
    Interrupted interrupted = {};
    Watch watch = {};
    const Clock* clock = &system_clock();  // for settling and confirm timeouts
};

}  // namespace pccl::cluster
