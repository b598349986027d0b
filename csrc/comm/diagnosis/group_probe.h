// SPDX-License-Identifier: Apache-2.0

// Probe of a group on behalf of other groups of the process that wait for its ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <pccl/deadline.h>
#include "csrc/comm/diagnosis/diagnosed_group.h"
#include "csrc/comm/diagnosis/other_groups.h"
#include "csrc/comm/diagnosis/peer_survey.h"
#include "csrc/comm/diagnosis/self_report.h"

namespace pccl::comm {

class DiagnosedGroupProbe final : public GroupProbe {
   public:
    /// Keeps references, which must outlive it; `received_reason` is shared with SelfReport.
    DiagnosedGroupProbe(const DiagnosisSubject& subject, const SelfReport& self,
                        const PeerSurvey& survey, const ReceivedReason& received_reason)
        : subject_(subject), self_(self), survey_(survey), received_(received_reason) {}

    [[nodiscard]] const transport::GroupId& group() const override {
        return subject_.peers.directory().identity().group;
    }
    [[nodiscard]] std::optional<LostMember> look_for_lost(std::uint64_t suspect) override;
    [[nodiscard]] std::optional<LostMember> look_for_holdup(std::uint64_t suspect,
                                                            Deadline deadline) override;
    [[nodiscard]] OtherGroupWait blocked_in() const override { return self_.blocked_in(); }
    [[nodiscard]] bool can_be_awaited(std::span<const Rank> awaited) const override;
    [[nodiscard]] bool has_called(std::uint64_t sequence) const override {
        return subject_.group.sequence() >= sequence;
    }
    void end(const Status& why) override { subject_.group.end(why); }

    /// Follows the chain of waits in this group from `rank`, which has not joined another one:
    /// kTimeout names the last rank of the chain, kPeerLost one that has left.
    [[nodiscard]] Status whom_awaits(Rank rank, Deadline deadline) const;

   private:
    /// Returns why a member is gone, by the links and by the answer of `suspect`.
    [[nodiscard]] Status look_at_members(std::uint64_t suspect) const;
    /// Returns why this group is over or `rank` has left it, if this rank has been notified.
    [[nodiscard]] Status known_end(Rank rank) const;
    [[nodiscard]] bool is_made() const;
    /// Returns kNoRank for this rank, too.
    [[nodiscard]] Rank other_rank(std::uint64_t global_rank) const;

    const DiagnosisSubject& subject_;
    const SelfReport& self_;
    const PeerSurvey& survey_;
    const ReceivedReason& received_;
};

}  // namespace pccl::comm
