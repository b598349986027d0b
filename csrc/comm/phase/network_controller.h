// SPDX-License-Identifier: Apache-2.0

// Controller of a network's switches, as a switch of phases uses it: the participant side of a
// two-phase commit. cluster::Controller implements it; rank 0 drives it.
#pragma once

#include <functional>
#include <string>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/comm/phase/network_report.h"

namespace pccl::comm {

struct ControllerOptions {
    Duration step_timeout = std::chrono::seconds(5);  // per step, on all switches
    /// Discards edits of others in the candidates of switches, instead of refusing.
    bool discard_candidate = false;
    /// Called between steps, and during steps that change nothing; an error makes the step fail.
    std::function<Status()> interrupted = {};
};

class NetworkController {
   public:
    virtual ~NetworkController() = default;

    /// Makes all switches lock, store and check the change to `phase`; traffic continues. Returns
    /// kPrepared, or kRefused with the reason: nothing stays prepared then. Blocks for a bounded
    /// time.
    [[nodiscard]] virtual NetworkReport prepare(const std::string& phase,
                                                const ControllerOptions& options) = 0;
    /// Commits the change of prepare(), on all switches or on none, and reads them. Call it
    /// once after kPrepared, on the same thread, or discard().
    [[nodiscard]] virtual NetworkReport commit() = 0;
    /// Discards what prepare() has prepared. Returns kPrepared if `why` is ok, for a dry run;
    /// otherwise kRefused with `why`.
    [[nodiscard]] virtual NetworkReport discard(const Status& why) = 0;
    /// Waits until the switches have reverted what a lost controller left unconfirmed, then adopts
    /// the phase that they show, and returns it; empty: nothing is connected. kMismatch: they show
    /// no phase.
    [[nodiscard]] virtual Result<std::string> read_back(const ControllerOptions& options) = 0;
};

}  // namespace pccl::comm
