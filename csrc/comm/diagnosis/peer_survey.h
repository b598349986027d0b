// SPDX-License-Identifier: Apache-2.0

// Survey of the other ranks of a group by status requests.
#pragma once

#include <atomic>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/comm/diagnosis/diagnosed_group.h"
#include "csrc/comm/diagnosis/rank_status.h"
#include "csrc/comm/diagnosis/self_report.h"
#include "csrc/runtime/flight/flight_recorder.h"

namespace pccl::comm {

/// Returns whether `entry`, a successful operation of rank `self`, required `peer`.
[[nodiscard]] PCCL_API bool is_sign_of(Rank peer, const runtime::FlightEntry& entry, Rank self);

/// Thread-safe once the peers are registered.
class PeerSurvey {
   public:
    /// Keeps references to both, which must outlive it.
    PeerSurvey(const DiagnosisSubject& subject, const SelfReport& self);

    /// Requests the status of `rank` (which may be this one) from itself; kPeerLost if it is gone,
    /// kTimeout if it is silent. Its wait in another group is compared with the groups of this
    /// process. If it has only a short notice of why the group is over, the sender of that notice
    /// receives a request for the full reason.
    [[nodiscard]] Result<RankStatus> query(Rank rank, Deadline deadline) const;
    /// Requests the same, and adds the time of the last sign of life of `rank`.
    [[nodiscard]] SurveyedPeer query_with_last_sign(Rank rank, Deadline deadline) const;

   private:
    /// Returns why the group is over, from the rank that notified the one with this `answer`.
    [[nodiscard]] Status at_first_hand(const RankStatus& answer, Deadline deadline) const;
    [[nodiscard]] TimePoint last_sign_of(Rank rank) const;

    const DiagnosisSubject& subject_;
    const SelfReport& self_;
    /// Indexed by rank: time of the last answer.
    mutable std::vector<std::atomic<TimePoint>> answered_;
};

}  // namespace pccl::comm
