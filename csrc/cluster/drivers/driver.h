// SPDX-License-Identifier: Apache-2.0

// Interface between a transaction and a switch, independent of its protocol.
//
// A step is begun and then advanced without blocking, so that one thread serves all switches. To
// add a protocol, implement this interface in a further file, on a module of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/cluster.h>
#include <pccl/deadline.h>
#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/cluster/model/circuits.h"

namespace pccl::cluster {

/// Commit capability of a switch in a transaction.
enum class Commitment {
    kConfirmed,  // reverts a commit by itself unless it is confirmed
    kCandidate,  // checks before a commit; a rollback is a further change
    kImmediate,  // neither: a change takes effect when it is written
};
[[nodiscard]] PCCL_API std::string_view to_string(Commitment commitment);

struct Intent {
    Circuits from;
    Circuits to;
    std::chrono::seconds confirm_timeout{10};
    /// Returns whether a phase of the cluster has these circuits on this switch: a controller that
    /// ended before its commit may have left them in the candidate. Null: unknown.
    std::function<bool(const Circuits&)> is_of_phase = nullptr;
    /// kLock discards edits of others in the candidate.
    bool discards_candidate = false;
};

/// Events that end the wait for the next step; fd -1: poll again soon.
struct Readiness {
    int fd = -1;
    bool input = false;
    bool output = false;
};

/// Driver of one switch. Not thread-safe. After kTimeout, kPeerLost, or kUnavailable while
/// connecting, the outcome of a step is unknown; after any other error the step was not done.
class PCCL_API SwitchDriver {
   public:
    virtual ~SwitchDriver() = default;

    /// Returns the capability of a connected switch.
    [[nodiscard]] virtual Commitment commitment() const = 0;
    virtual void begin(Step step, const Intent& intent) = 0;
    /// Continues the step; returns true once it is done.
    [[nodiscard]] virtual Result<bool> advance() = 0;
    [[nodiscard]] virtual Readiness readiness() const = 0;
    /// Returns the circuits of the last kRead.
    [[nodiscard]] virtual const Circuits& circuits() const = 0;
    /// Returns, from the last kLight, the ingress ports of circuits without light, in ascending
    /// order; empty if the switch does not report light.
    [[nodiscard]] virtual const std::vector<int>& dark() const = 0;
    /// Returns whether the connected switch has a startup configuration apart from the running one,
    /// which only kSave updates.
    [[nodiscard]] virtual bool has_startup() const = 0;
    /// Returns a description of the edits that kLock has discarded since the last call; empty:
    /// none.
    [[nodiscard]] virtual std::string take_discarded() = 0;
    /// Returns the name of another party for which a step waits; empty: the switch itself.
    [[nodiscard]] virtual std::string awaited() const { return {}; }
    /// Aborts the step and closes the session.
    virtual void abandon(const Status& why) = 0;
    /// Returns the exchanges since the last call.
    [[nodiscard]] virtual std::vector<Exchange> take_exchanges() = 0;
};

}  // namespace pccl::cluster
