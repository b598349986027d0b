// What takes part in the life of a process: a rank of a group, on links and threads of the runtime.
#pragma once

#include <memory>
#include <string>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/runtime/visible_group.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/transport.h"

namespace pccl::runtime {

/// One rank of a group as its runtime sees it.
class Participant {
   public:
    virtual ~Participant() = default;

    // On the acceptor: must not wait for a lock that somebody holds while the group is made.

    virtual void accept_link(const transport::LinkRequest& request,
                             std::unique_ptr<transport::RecvLink> link) = 0;
    virtual void accept_region(const transport::LinkRequest& request,
                               std::unique_ptr<transport::Region> region) = 0;
    /// A rank tells why it has left.
    virtual void hear(Rank /*from*/, const Status& /*reason*/) {}
    /// This process lacks what a peer's connection takes.
    virtual void fall_short(const Status& /*why*/) {}
    /// How this rank fares in the group, for another that asks.
    [[nodiscard]] virtual std::string describe(Rank /*asker*/) { return {}; }
    /// For onlookers; null where it is of no group.
    [[nodiscard]] virtual const VisibleGroup* visible() const { return nullptr; }

    // On the progress thread:

    /// Whether operations are in flight that somebody should carry on.
    [[nodiscard]] virtual bool is_busy() const = 0;
    /// How long the thread may sleep when nothing moves and nobody wakes it.
    [[nodiscard]] virtual Duration longest_sleep() const { return transport::Backoff::kSlice; }
    /// Carries operations on; true when something moved.
    virtual bool progress() = 0;
    /// What a thread does now and then that has waited for `idle` and seen nothing move.
    virtual void look_around(Duration /*idle*/) {}
};

}  // namespace pccl::runtime
