// SPDX-License-Identifier: Apache-2.0

// Exchange of findings between the groups of one process: a rank of the job is gone, a rank waits
// for another, or two groups are used in different orders.
//
// Ranks of the job have global numbers (CommunicatorOptions::global_ranks): a rank of one group may
// be any rank of another.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/comm/diagnosis/rank_status.h"
#include "csrc/runtime/runtime.h"

namespace pccl::comm {

/// A rank of the job that a group has found to be gone, or to delay others.
struct LostMember {
    std::uint64_t global_rank = 0;
    Status why;  // kPeerLost, kTimeout; kUnavailable if this process has no route to it
};

/// Interface of a group for queries on behalf of another group of the process. Thread-safe.
class GroupProbe {
   public:
    virtual ~GroupProbe() = default;
    [[nodiscard]] virtual const transport::GroupId& group() const = 0;
    /// Checks all members by their links, and requests the status of `suspect` if it is a member.
    [[nodiscard]] virtual std::optional<LostMember> look_for_lost(std::uint64_t suspect) = 0;
    /// Follows the chain of waits in this group from `suspect`, a member that has not joined
    /// another group: kTimeout names the last rank of the chain.
    [[nodiscard]] virtual std::optional<LostMember> look_for_holdup(std::uint64_t suspect,
                                                                    Deadline deadline) = 0;
    /// Returns the collective that a user's thread waits for in this group now. It has no operation
    /// if there is none.
    [[nodiscard]] virtual OtherGroupWait blocked_in() const = 0;
    /// Returns whether this process is among the ranks `awaited`, and has not left the group.
    [[nodiscard]] virtual bool can_be_awaited(std::span<const Rank> awaited) const = 0;
    /// Returns whether the collective of that number has been called here.
    [[nodiscard]] virtual bool has_called(std::uint64_t sequence) const = 0;
    /// Ends this group with a finding of another group.
    virtual void end(const Status& why) = 0;
};

/// A participant that is a group; the functions below skip other participants.
class ProbedParticipant : public runtime::Participant {
   public:
    [[nodiscard]] virtual GroupProbe& group_probe() = 0;
};

/// Returns the group's rank for a rank of the job; kNoRank: none.
[[nodiscard]] Rank place_of(std::uint64_t global_rank, std::span<const std::uint64_t> global_ranks);

/// Checks by all groups of this process whether a rank of the job among `global_ranks` is gone.
/// Returns LostMember::why with its index among them. The rank at index `suspect` receives a status
/// request.
[[nodiscard]] Status look_for_lost(runtime::Runtime& runtime,
                                   std::span<const std::uint64_t> global_ranks, Rank suspect);
/// Returns `late`, a kTimeout that names one of `global_ranks`, or an error that names the rank for
/// which that one waits in another group of this process. Takes at most
/// DiagnosisTiming::graph_walk.
[[nodiscard]] Status timeout_cause(runtime::Runtime& runtime,
                                   std::span<const std::uint64_t> global_ranks, const Status& late);

/// Returns the collective for which a user's thread waits in any group but `here`.
[[nodiscard]] PCCL_API OtherGroupWait blocked_outside(runtime::Runtime& runtime,
                                                      const transport::GroupId& here);
/// Returns whether the wait of a rank in that group includes this process.
[[nodiscard]] bool is_awaited(runtime::Runtime& runtime, const OtherGroupWait& there);
/// Returns whether it waits in a collective that this process has not called.
[[nodiscard]] bool is_lacking(runtime::Runtime& runtime, const OtherGroupWait& there);
/// Ends the group for all ranks of this process that are members.
void end_group(runtime::Runtime& runtime, const transport::GroupId& group, const Status& why);

}  // namespace pccl::comm
