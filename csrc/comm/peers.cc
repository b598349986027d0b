#include "csrc/comm/peers.h"

#include <string>
#include <utility>

#include "csrc/comm/diagnosis/diagnosis_timing.h"
#include "csrc/comm/diagnosis/inquest.h"

namespace pccl::comm {

Peers::Peers(runtime::Runtime& runtime, const bootstrap::GroupIdentity& identity,
             runtime::PeerDirectory::Self self)
    : directory_(runtime, identity, std::move(self)),
      board_setup_(runtime, directory_),
      links_(runtime, directory_) {}

Status Peers::register_remote_infos(const bootstrap::Roster& roster, BoardSetup::MemoryVote vote,
                                    Deadline deadline) {
    directory_.register_endpoints(roster.endpoints);
    if (!BoardSetup::has_board(roster)) return Status::ok();
    const auto ask_first = [this](Deadline until) { return ask(0, until).status(); };
    vote.is_there = [this](Rank peer, Deadline until) {
        return directory_.query(directory_.endpoint(peer), until).is_ok();
    };
    PCCL_TRY(board_setup_.make(ask_first, vote, deadline, board_));
    if (board_ == nullptr) directory_.forbid(transport::TransportKind::kShm);
    return Status::ok();
}

Rank Peers::reaching() const {
    const Rank on_board = board_setup_.awaited();
    return on_board == kNoRank ? links_.reaching() : on_board;
}

Result<Situation> Peers::ask(const bootstrap::Endpoint& peer, Deadline deadline) const {
    const Duration pause = DiagnosisTiming().ask_again_after;
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(const std::string answer, directory_.query(peer, deadline));
        PCCL_ASSIGN_OR_RETURN(Situation situation, Situation::parse(answer));
        if (situation.is_whole || deadline.remaining() <= pause) return situation;
        system_clock().sleep_for(pause);
    }
}

Status Peers::look_at(std::span<const bootstrap::Endpoint> joined) const {
    for (const bootstrap::Endpoint& endpoint : joined) {
        if (endpoint.rank == directory_.rank()) continue;
        const auto answer = ask(endpoint, Deadline::after(DiagnosisTiming().glance));
        PCCL_TRY(why_lost(endpoint.rank, answer, directory_.rank(), directory_.size()));
    }
    return Status::ok();
}

Status Peers::tell(Rank peer, const Status& reason, Deadline deadline) const {
    return directory_.notify(peer, reason, deadline);
}

std::vector<Rank> Peers::out_of_reach() {
    if (board_ != nullptr || !directory_.knows_peers()) return {};
    return links_.unlinked();
}

Status Peers::look() {
    if (board_ != nullptr) PCCL_TRY(board_->look_at_all());
    return links_.look();
}

Status Peers::look(Rank peer) {
    if (board_ != nullptr) PCCL_TRY(board_->look(peer));
    return links_.look(peer);
}

Status Peers::look_for_failure() {
    if (board_ != nullptr) PCCL_TRY(board_->failure());
    return links_.look_for_failure();
}

Status Peers::compare_latest(const abi::CollectiveHeader& ours) {
    if (board_ != nullptr) PCCL_TRY(board_->compare_latest(ours));
    return links_.compare_latest(ours);
}

void Peers::close(const Status& reason) {
    if (board_ != nullptr) board_->leave(reason);
    links_.close(reason);
}

}  // namespace pccl::comm
