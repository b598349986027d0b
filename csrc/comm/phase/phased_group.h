// What a switch of phases asks of a group of this process whose network is switched.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "csrc/base/clock.h"
#include "csrc/comm/diagnosis/rank_status.h"
#include "csrc/comm/diagnosis/switching.h"
#include "csrc/schedule/generators/link_graph.h"

namespace pccl::comm {

/// The network as a group has it.
struct GroupPhase {
    std::string name;              // empty: none was switched to yet
    std::uint32_t generation = 0;  // the number of the switch that led to it
    /// Between its ranks; null: all of them reach each other.
    std::shared_ptr<const schedule::LinkGraph> links;
    Status unusable{};  // why none of its collectives gets through
};

/// From any thread, but where it says otherwise.
class PhasedGroup {
   public:
    virtual ~PhasedGroup() = default;

    [[nodiscard]] virtual Rank rank() const = 0;
    [[nodiscard]] virtual int size() const = 0;
    [[nodiscard]] virtual const std::string& name() const = 0;
    /// Whether these two ranks share memory, whatever the network does.
    [[nodiscard]] virtual bool share_memory(Rank one, Rank other) const = 0;

    /// ok where this rank has a route back to one whose link to it goes one way; `is_fixed`: which
    /// does not change with the phase.
    [[nodiscard]] virtual Status check_reverse_route(Rank source, bool is_fixed) const = 0;

    /// Calls wait from now on until release(), up to their timeout.
    virtual void hold() = 0;
    virtual void release() = 0;
    /// Moves what is under way, one step; true when nothing is. An error is the group's end.
    [[nodiscard]] virtual Result<bool> drain() = 0;
    /// What it is that is under way.
    [[nodiscard]] virtual std::string under_way() const = 0;
    /// Of a group where nothing is under way.
    [[nodiscard]] virtual Switching::GroupProgress progress() const = 0;
    /// Of a group on hold, where nothing is under way on any rank: links over the network are made
    /// anew when they are next used, and those of older generations refused.
    virtual void enter(GroupPhase phase) = 0;

    [[nodiscard]] virtual Result<RankStatus> ask(Rank rank, Deadline deadline) const = 0;
    [[nodiscard]] virtual SwitchState& switching() = 0;
    [[nodiscard]] virtual Status check_interrupt() const = 0;
    /// ok, or the error that ended it.
    [[nodiscard]] virtual Status health() const = 0;
    virtual void end(const Status& why) = 0;
    /// How a switch has ended: where ranks disagreed, and nothing comes after it, who leaves says
    /// so to those that had not called.
    virtual void note_ended_switch(const Status& why) = 0;
};

}  // namespace pccl::comm
