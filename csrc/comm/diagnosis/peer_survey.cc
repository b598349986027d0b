// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/diagnosis/peer_survey.h"

#include <algorithm>

#include "csrc/comm/diagnosis/other_groups.h"
#include "csrc/comm/diagnosis/shrinking.h"
#include "csrc/schedule/schedule.h"

namespace pccl::comm {

bool is_sign_of(Rank peer, const runtime::FlightEntry& entry, Rank self) {
    if (entry.finished == TimePoint{} || entry.outcome != StatusCode::kOk) return false;
    if (entry.kind == runtime::FlightKind::kSend) return false;
    if (entry.kind == runtime::FlightKind::kReceive) return entry.message.peer == peer;
    const Rank root = entry.collective.root;
    switch (static_cast<schedule::CollectiveKind>(entry.collective.kind)) {
        case schedule::CollectiveKind::kBroadcast:
        case schedule::CollectiveKind::kScatter:
            return peer == root;
        case schedule::CollectiveKind::kReduce:
        case schedule::CollectiveKind::kGather:
            return self == root;
        default:
            return true;
    }
}

PeerSurvey::PeerSurvey(const DiagnosisSubject& subject, const SelfReport& self)
    : subject_(subject),
      self_(self),
      answered_(static_cast<std::size_t>(subject.peers.directory().size())) {}

Result<RankStatus> PeerSurvey::query(Rank rank, Deadline deadline) const {
    if (rank == subject_.peers.directory().rank()) return self_.whole_rank_status();
    auto answer = subject_.peers.query(rank, deadline);
    if (!answer.is_ok()) return answer;
    answered_[static_cast<std::size_t>(rank)].store(system_clock().now());
    answer->broken = at_first_hand(*answer, deadline);
    answer->other_group_wait.awaits_requester =
        is_awaited(subject_.runtime, answer->other_group_wait);
    answer->other_group_wait.lacks_requester =
        is_lacking(subject_.runtime, answer->other_group_wait);
    return answer;
}

Status PeerSurvey::at_first_hand(const RankStatus& answer, Deadline deadline) const {
    const runtime::PeerDirectory& members = subject_.peers.directory();
    const Rank probe = answer.reported_by;
    if (probe < 0 || probe >= members.size() || probe == members.rank()) return answer.broken;
    const auto whole = subject_.peers.query(probe, deadline);
    const bool has_reason = whole.is_ok() && !whole->broken.is_ok();
    return has_reason ? whole->broken : answer.broken;
}

SurveyedPeer PeerSurvey::query_with_last_sign(Rank rank, Deadline deadline) const {
    const auto answer = query(rank, deadline);
    SurveyedPeer health{.rank = rank};
    if (answer.is_ok()) {
        health.detail = answer->broken.message();
        health.rank_status = *answer;
        health.last_sign = Duration::zero();
        const Shrinking& theirs = answer->shrinking;
        const bool has_gone_on = theirs.stage == Shrinking::ShrinkStage::kDecided &&
                                 theirs.pact != self_.shrinking().published().pact;
        if (!has_gone_on) return health;
        health.state = SurveyedPeer::Liveness::kGone;
        health.detail = gone_on(rank, theirs).message();
        return health;
    }
    const bool is_gone = answer.status().code() == StatusCode::kPeerLost;
    health.state = is_gone ? SurveyedPeer::Liveness::kGone : SurveyedPeer::Liveness::kSilent;
    health.detail = answer.status().message();
    if (const TimePoint last = last_sign_of(rank); last != TimePoint{})
        health.last_sign = system_clock().now() - last;
    return health;
}

TimePoint PeerSurvey::last_sign_of(Rank rank) const {
    TimePoint last = answered_[static_cast<std::size_t>(rank)].load();
    for (const runtime::FlightEntry& entry : runtime::flight_recorder().entries())
        if (entry.group == subject_.flight_group &&
            is_sign_of(rank, entry, subject_.peers.directory().rank()))
            last = std::max(last, entry.finished);
    return last;
}

}  // namespace pccl::comm
