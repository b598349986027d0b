// SPDX-License-Identifier: Apache-2.0

// Interface of the participants of a process: ranks of groups, and sessions, that use the runtime's
// links and threads.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/bootstrap/endpoint.h"
#include "csrc/runtime/flight/group_usage.h"
#include "csrc/transport/control/introduction.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/transport.h"

namespace pccl::runtime {

/// Thread-safe. No function waits longer than 20 ms.
class VisibleGroup {
   public:
    virtual ~VisibleGroup() = default;

    struct Standing {
        std::vector<Rank> awaited{};
        Status broken{};       // why the group has failed here; ok: it has not
        bool is_whole = true;  // false: a thread holds the group
    };

    [[nodiscard]] virtual const transport::GroupId& id() const = 0;
    /// Returns the group's id in the flight recorder.
    [[nodiscard]] virtual std::uint32_t flight_group() const = 0;
    [[nodiscard]] virtual Standing standing() const = 0;
    /// Returns the counters of this rank, with at most `most` waits and paths; none of the paths
    /// while the group is held.
    [[nodiscard]] virtual UsageSnapshot usage(std::size_t most) const = 0;
    /// Returns the windows of the counters' history that do not end before a time since 1970; none
    /// while the group is held.
    [[nodiscard]] virtual std::vector<UsageWindow> history(std::chrono::seconds from) const = 0;
    /// Returns at most `most` of its ranks from `first` on; none while the group is being made or
    /// held.
    [[nodiscard]] virtual std::vector<bootstrap::Endpoint> members(Rank first,
                                                                   std::size_t most) const = 0;
};

/// A rank of a group, or a session, for its runtime.
class Participant {
   public:
    virtual ~Participant() = default;

    // Called by the acceptor. Implementations must not wait for a lock that is held while the group
    // is made.

    virtual void accept_link(const transport::LinkRequest& request,
                             std::unique_ptr<transport::RecvLink> link) = 0;
    virtual void accept_region(const transport::LinkRequest& request,
                               std::unique_ptr<transport::Region> region) = 0;
    /// Handles the message of a rank that it has left, with its reason.
    virtual void receive_reason(Rank /*from*/, const Status& /*reason*/) {}
    /// Reports that this process lacks resources for a peer's connection.
    virtual void fall_short(const Status& /*why*/) {}
    /// Returns the state of this rank in the group, for another rank.
    [[nodiscard]] virtual std::string describe(Rank /*asker*/) { return {}; }
    /// Returns the view for onlookers; null where it belongs to no group.
    [[nodiscard]] virtual const VisibleGroup* visible() const { return nullptr; }

    // Called by the progress thread:

    /// Returns whether operations are in flight that need progress.
    [[nodiscard]] virtual bool is_busy() const = 0;
    /// Returns how long the thread may sleep when nothing moves, unless woken.
    [[nodiscard]] virtual Duration longest_sleep() const { return transport::Backoff::kSlice; }
    /// Makes progress on operations; returns true if anything moved.
    virtual bool progress() = 0;
    /// Runs periodic checks by a thread that has waited for `idle` without progress.
    virtual void look_around(Duration /*idle*/) {}
};

}  // namespace pccl::runtime
