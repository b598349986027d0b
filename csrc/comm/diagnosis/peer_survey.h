// How the other ranks of a group fare, by asking them.
#pragma once

#include <atomic>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/comm/diagnosis/diagnosed_group.h"
#include "csrc/comm/diagnosis/peer_health.h"
#include "csrc/comm/diagnosis/self_report.h"

namespace pccl::comm {

/// From any thread, once the peers are registered.
class PeerSurvey {
   public:
    /// Both outlive it.
    PeerSurvey(const DiagnosisSubject& subject, const SelfReport& self);

    /// How `rank` fares, from itself, this one too; kPeerLost where it is gone, kTimeout where it
    /// is silent. What it waits for in another group is compared with the groups of this process.
    /// Where it has a short notice of why the group is over, who gave that is asked for the whole.
    [[nodiscard]] Result<RankStatus> ask(Rank rank, Deadline deadline) const;
    /// The same, and when `rank` last gave a sign of life.
    [[nodiscard]] PeerHealth health_of(Rank rank, Deadline deadline) const;

   private:
    /// Why the group is over, as the rank that has told the one with this `answer` says it.
    [[nodiscard]] Status at_first_hand(const RankStatus& answer, Deadline deadline) const;
    [[nodiscard]] TimePoint last_sign_of(Rank rank) const;

    const DiagnosisSubject& subject_;
    const SelfReport& self_;
    mutable std::vector<std::atomic<TimePoint>> answered_;  // by rank: the last time that it did
};

}  // namespace pccl::comm
