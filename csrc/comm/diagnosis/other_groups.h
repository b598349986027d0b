// What the groups of one process find out for one another: that a rank of the job is gone, whom it
// waits for, and that two groups are used in different orders.
//
// Ranks of the job are numbered as in the whole of it (CommunicatorOptions::global_ranks): a rank
// of one group may be any rank of another.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/comm/diagnosis/rank_status.h"
#include "csrc/runtime/runtime.h"

namespace pccl::comm {

/// A rank of the job that a group has found to be gone, or to hold up others.
struct LostMember {
    std::uint64_t global_rank = 0;
    Status why;  // kPeerLost, kTimeout; kUnavailable where this process has no way to it
};

/// A group, as those are told that ask on behalf of another group of the process. From any thread.
class GroupProbe {
   public:
    virtual ~GroupProbe() = default;
    [[nodiscard]] virtual const transport::GroupId& group() const = 0;
    /// Looks at all members as far as the links show them, and asks `suspect` if it is one of them.
    [[nodiscard]] virtual std::optional<LostMember> look_for_lost(std::uint64_t suspect) = 0;
    /// Whom `suspect`, a member that has not joined another group, waits for in this group:
    /// kTimeout that names the last in that chain.
    [[nodiscard]] virtual std::optional<LostMember> look_for_holdup(std::uint64_t suspect,
                                                                    Deadline deadline) = 0;
    /// The collective that a thread of the user waits for in this group now; no operation: none.
    [[nodiscard]] virtual OtherGroupWait blocked_in() const = 0;
    /// Whether this process is among the ranks `awaited`, and has not left the group.
    [[nodiscard]] virtual bool can_be_awaited(std::span<const Rank> awaited) const = 0;
    /// Whether the collective of that number has been called here.
    [[nodiscard]] virtual bool has_called(std::uint64_t sequence) const = 0;
    /// What another group has found out: ends this one.
    virtual void fail(const Status& why) = 0;
};

/// A participant that is a group; others are passed over below.
class ProbedParticipant : public runtime::Participant {
   public:
    [[nodiscard]] virtual GroupProbe& group_probe() = 0;
};

/// Which of a group's ranks that rank of the job is; kNoRank: none.
[[nodiscard]] Rank place_of(std::uint64_t global_rank, std::span<const std::uint64_t> global_ranks);

/// Looks whether a rank of the job that is among `global_ranks` is gone, as far as the groups of
/// this process show it: LostMember::why, with its place among them. The one at `suspect` is asked
/// how it fares.
[[nodiscard]] Status look_for_lost(runtime::Runtime& runtime,
                                   std::span<const std::uint64_t> global_ranks, Rank suspect);
/// `late`, a kTimeout that names one of `global_ranks`; or, where that one is held up in another
/// group of this process, whom it waits for there. Takes at most DiagnosisTiming::graph_walk.
[[nodiscard]] Status timeout_cause(runtime::Runtime& runtime,
                                   std::span<const std::uint64_t> global_ranks, const Status& late);

/// What a thread of the user waits for in any group but `here`.
[[nodiscard]] PCCL_API OtherGroupWait blocked_outside(runtime::Runtime& runtime,
                                                      const transport::GroupId& here);
/// Whether a rank that waits there waits for this process.
[[nodiscard]] bool is_awaited(runtime::Runtime& runtime, const OtherGroupWait& there);
/// Whether it waits in a collective that this process has not called.
[[nodiscard]] bool is_lacking(runtime::Runtime& runtime, const OtherGroupWait& there);
/// Ends the group, for all ranks of this process that are in it.
void fail_group(runtime::Runtime& runtime, const transport::GroupId& group, const Status& why);

}  // namespace pccl::comm
