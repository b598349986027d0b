// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/group/peers.h"

#include <string>
#include <utility>

#include "csrc/comm/diagnosis/diagnosis_timing.h"
#include "csrc/comm/diagnosis/wait_for_graph.h"

namespace pccl::comm {

Peers::Peers(runtime::Runtime& runtime, const bootstrap::GroupIdentity& identity,
             runtime::PeerDirectory::Self self)
    : directory_(runtime, identity, std::move(self)),
      shm_setup_(runtime, directory_),
      links_(runtime, directory_) {}

Status Peers::connect(const bootstrap::Roster& roster, ShmSetup::MemoryVote vote,
                      Deadline deadline) {
    directory_.register_endpoints(roster.endpoints);
    if (!ShmSetup::has_segment(roster)) return Status::ok();
    const auto query_first = [this](Deadline until) { return query(0, until).status(); };
    vote.is_there = [this](Rank peer, Deadline until) {
        return directory_.query(directory_.endpoint(peer), until).is_ok();
    };
    PCCL_TRY(shm_setup_.make(query_first, vote, deadline, segment_));
    if (segment_ == nullptr) directory_.forbid(transport::TransportKind::kShm);
    return Status::ok();
}

Rank Peers::reaching() const {
    const Rank on_shm = shm_setup_.awaited();
    return on_shm == kNoRank ? links_.reaching() : on_shm;
}

Result<RankStatus> Peers::query(const bootstrap::Endpoint& peer, Deadline deadline) const {
    const Duration pause = DiagnosisTiming().query_again_after;
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(const std::string answer, directory_.query(peer, deadline));
        PCCL_ASSIGN_OR_RETURN(RankStatus rank_status, RankStatus::parse(answer));
        if (rank_status.is_whole || deadline.remaining() <= pause) return rank_status;
        system_clock().sleep_for(pause);
    }
}

Status Peers::look_at(std::span<const bootstrap::Endpoint> joined) const {
    for (const bootstrap::Endpoint& endpoint : joined) {
        if (endpoint.rank == directory_.rank()) continue;
        const auto answer = query(endpoint, Deadline::after(DiagnosisTiming().glance));
        PCCL_TRY(why_lost(endpoint.rank, answer, directory_.rank(), directory_.size()));
    }
    return Status::ok();
}

Status Peers::notify(Rank peer, const Status& reason, Deadline deadline) const {
    return directory_.notify(peer, reason, deadline);
}

std::vector<Rank> Peers::out_of_reach() {
    if (segment_ != nullptr || !directory_.has_endpoints()) return {};
    return links_.unlinked();
}

Status Peers::look() {
    if (segment_ != nullptr) PCCL_TRY(segment_->look_at_all());
    return links_.look();
}

Status Peers::look(Rank peer) {
    if (segment_ != nullptr) PCCL_TRY(segment_->look(peer));
    return links_.look(peer);
}

Status Peers::look_for_failure() {
    if (segment_ != nullptr) PCCL_TRY(segment_->failure());
    return links_.look_for_failure();
}

Status Peers::compare_latest(const abi::CollectiveHeader& ours) {
    if (segment_ != nullptr) PCCL_TRY(segment_->compare_latest(ours));
    return links_.compare_latest(ours);
}

void Peers::close(const Status& reason) {
    if (segment_ != nullptr) segment_->leave(reason);
    links_.close(reason);
}

}  // namespace pccl::comm
