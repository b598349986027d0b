// SPDX-License-Identifier: Apache-2.0

// Agreement of the remaining ranks on a smaller group: either all of them continue with one list of
// ranks, or none does.
//
//     Agreement agreement({...});
//     identity = agreement.propose();     all remaining ranks propose the same list
//     (create and register the group, and do all other work that may fail here)
//     agreement.confirm();                all ranks have come this far; this rank continues
//
// This is a commit among exactly the remaining ranks, which all confirm the list before any of them
// continues. Each rank answers requests for its stage, over connections that authenticate with the
// old group's secret, and sends requests to all others; there is no leader, and no store is needed.
// A rank continues when all have confirmed, or when it finds one that has continued. Until then it
// may give up and call shrink again: with the same list or a part of it, never with a rank that it
// has once confirmed to exclude.
//
// Why at most one side of a partitioned group continues: lists hold more than half of the group, or
// half with its rank 0 (check_quorum), so any two lists share a rank, and by the rule above one is
// a part of the other. Ranks that continue with the longer list, because they did not detect that
// the others gave up on it, are fewer than half of it. They cannot get further: neither an
// operation nor another shrink succeeds. (Dynamic linear voting: Jajodia and Mutchler, "Dynamic
// voting algorithms for maintaining the consistency of a replicated database", ACM TODS 15(2),
// 1990.)
//
// One case remains, which no protocol can rule out (two generals): a rank dies or is disconnected
// after it has confirmed. The others may continue with it, and detect its loss at their next
// operation.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/bootstrap/roster.h"
#include "csrc/comm/diagnosis/shrinking.h"
#include "csrc/comm/diagnosis/wait_for_graph.h"

namespace pccl::comm {

struct AgreementOptions {
    Rank self = 0;
    bootstrap::GroupIdentity old{};
    std::vector<Rank> staying{};   // ranks of the old group, in order; `self` is one of them
    std::vector<Rank> left_out{};  // the other ranks
    std::string terms{};           // settings of the smaller group that must be equal on all ranks
    StatusQuery query{};           // requests a rank's status in the old group
    /// Publishes the status that this rank answers from now on.
    std::function<void(const Shrinking&)> publish{};
    std::function<Status()> interrupted{};  // called between requests; may be empty
    Deadline deadline = Deadline::never();
    Duration answer_timeout = std::chrono::seconds(10);  // for a rank that does not answer
    Duration doubt = std::chrono::seconds(2);  // before a rank that has confirmed gives up
};

class PCCL_API Agreement {
   public:
    explicit Agreement(AgreementOptions options);
    /// Ends the shrink of the group, unless this rank has continued in the smaller one.
    ~Agreement();
    Agreement(const Agreement&) = delete;
    Agreement& operator=(const Agreement&) = delete;

    // Errors: kTimeout names a rank that has not called, kMismatch one with another list, kPeerLost
    // one that is gone; kUnavailable means that others have continued without this rank.

    /// Waits until all remaining ranks propose the same. Returns the identity of the smaller group,
    /// which only they can derive.
    [[nodiscard]] Result<bootstrap::GroupIdentity> propose();
    // The next functions return false if a rank has given up in the meantime: call propose() again,
    // which waits for that rank's next call.

    /// Declares that this rank accepts connections of the new group, for ranks that create it
    /// together. Waits until all ranks do.
    [[nodiscard]] Result<bool> await_ready();
    /// Confirms; call it when nothing else can fail. Returns true once this rank has continued, and
    /// publishes that.
    [[nodiscard]] Result<bool> confirm();

   private:
    using ShrinkStage = Shrinking::ShrinkStage;
    struct Peer {
        Rank rank = 0;
        Shrinking reported{};
        TimePoint queried{};
        TimePoint answered{};
        std::string silence{};  // why the last request had no answer
    };

    void publish(ShrinkStage stage);
    [[nodiscard]] Result<bool> gather(ShrinkStage stage);
    [[nodiscard]] Peer* next_to_query(ShrinkStage stage);
    [[nodiscard]] Duration fresh() const;
    [[nodiscard]] Status look_at(Peer& peer);
    [[nodiscard]] Status judge(const Peer& peer) const;
    [[nodiscard]] Status let_see(Status found) const;
    [[nodiscard]] std::string differs(const Peer& peer) const;
    [[nodiscard]] bool has_our_pact(const Shrinking& reported) const;
    [[nodiscard]] bool is_here(const Peer& peer, ShrinkStage stage) const;
    [[nodiscard]] bool has_given_up(const Peer& peer) const;
    [[nodiscard]] bool has_gone_on(const Shrinking& reported) const;
    [[nodiscard]] bool others_have_gone_on(Rank lost);
    [[nodiscard]] Status has_not_come(const Peer& peer) const;

    const AgreementOptions options_;
    const TimePoint begun_;
    Shrinking own_;
    std::vector<Peer> peers_;
    /// Calls of all remaining ranks, which the pact includes.
    std::map<Rank, Shrinking::Call> calls_;
};

/// Checks that the remaining ranks `staying`, in order, may continue a group of `size` ranks.
/// Returns kUnavailable naming the missing ranks if they are fewer than `least`. Without `least`,
/// more than half of the group must remain, or half with its rank 0. At most one side of a
/// partitioned group may thus continue.
[[nodiscard]] PCCL_API Status check_quorum(int size, std::span<const Rank> staying,
                                           std::optional<int> least);

}  // namespace pccl::comm
