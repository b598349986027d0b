// SPDX-License-Identifier: Apache-2.0

// Interface of a group of this process for a switch of its network's phases.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <pccl/deadline.h>
#include "csrc/comm/diagnosis/rank_status.h"
#include "csrc/comm/diagnosis/switching.h"
#include "csrc/schedule/generators/link_graph.h"

namespace pccl::comm {

/// Phase of the network for a group.
struct GroupPhase {
    std::string name;              // empty: no switch yet
    std::uint32_t generation = 0;  // number of the switch that led to it
    /// Links between its ranks; null: all of them reach each other.
    std::shared_ptr<const schedule::LinkGraph> links;
    Status unusable{};  // why none of its collectives can run
};

/// Thread-safe, except where noted.
class PhasedGroup {
   public:
    virtual ~PhasedGroup() = default;

    [[nodiscard]] virtual Rank rank() const = 0;
    [[nodiscard]] virtual int size() const = 0;
    [[nodiscard]] virtual const std::string& name() const = 0;
    /// Returns whether these two ranks share memory, which is independent of the network.
    [[nodiscard]] virtual bool share_memory(Rank one, Rank other) const = 0;

    /// Returns ok if this rank has a return route to one whose link to it is one-way; `is_fixed`:
    /// that link does not change with the phase.
    [[nodiscard]] virtual Status check_reverse_route(Rank source, bool is_fixed) const = 0;

    /// Makes calls wait from now on until release(), up to their timeout.
    virtual void hold() = 0;
    virtual void release() = 0;
    /// Makes one step of progress. Returns true when no operation is in flight. An error ends the
    /// group.
    [[nodiscard]] virtual Result<bool> drain() = 0;
    /// Describes the operations in flight.
    [[nodiscard]] virtual std::string under_way() const = 0;
    /// Returns the counts of a group without operations in flight.
    [[nodiscard]] virtual Switching::GroupProgress progress() const = 0;
    /// Enters a phase. The group must be on hold, without operations in flight on any rank: network
    /// links are created anew on their next use, and links of older generations are refused.
    virtual void enter(GroupPhase phase) = 0;

    [[nodiscard]] virtual Result<RankStatus> query(Rank rank, Deadline deadline) const = 0;
    [[nodiscard]] virtual SwitchState& switching() = 0;
    [[nodiscard]] virtual Status check_interrupt() const = 0;
    /// Returns ok, or the error that ended it.
    [[nodiscard]] virtual Status health() const = 0;
    virtual void end(const Status& why) = 0;
    /// Records the result of a switch. If ranks disagreed and no operation follows, the group
    /// notifies ranks that had not called when it closes.
    virtual void note_ended_switch(const Status& why) = 0;
};

}  // namespace pccl::comm
