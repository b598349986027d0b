// What a group knows of ranks that another group of the process waits for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "csrc/base/clock.h"
#include "csrc/comm/diagnosis/diagnosed_group.h"
#include "csrc/comm/diagnosis/other_groups.h"
#include "csrc/comm/diagnosis/peer_survey.h"
#include "csrc/comm/diagnosis/self_report.h"

namespace pccl::comm {

class DiagnosedGroupProbe final : public GroupProbe {
   public:
    /// All outlive it; `heard` as SelfReport has it.
    DiagnosedGroupProbe(const DiagnosisSubject& subject, const SelfReport& self,
                        const PeerSurvey& survey, const Heard& heard)
        : subject_(subject), self_(self), survey_(survey), heard_(heard) {}

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
    void fail(const Status& why) override { subject_.group.end(why); }

    /// Whom `rank`, which has not joined, waits for in this group: kTimeout that names the last in
    /// that chain, kPeerLost where one has left.
    [[nodiscard]] Status whom_awaits(Rank rank, Deadline deadline) const;

   private:
    /// Why a member is gone, as far as the links show it and `suspect` says it of itself.
    [[nodiscard]] Status look_at_members(std::uint64_t suspect) const;
    /// Why this group is over, or `rank` has left it, as far as that has been told here.
    [[nodiscard]] Status known_end(Rank rank) const;
    [[nodiscard]] bool is_made() const;
    /// kNoRank for this rank itself, too.
    [[nodiscard]] Rank other_rank(std::uint64_t global_rank) const;

    const DiagnosisSubject& subject_;
    const SelfReport& self_;
    const PeerSurvey& survey_;
    const Heard& heard_;
};

}  // namespace pccl::comm
