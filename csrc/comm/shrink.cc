// SPDX-License-Identifier: Apache-2.0

// Creates a smaller group out of one that has lost ranks. It uses no store, because the store may
// be lost, too: the survivors already have each other's endpoints.
#include <algorithm>
#include <set>

#include "csrc/base/config.h"
#include "csrc/base/text/text.h"
#include "csrc/bootstrap/job_exchange.h"
#include "csrc/bootstrap/locality.h"
#include "csrc/comm/communicator.h"
#include "csrc/comm/group/group.h"
#include "csrc/comm/join/join_options.h"
#include "csrc/comm/membership/agreement.h"
#include "csrc/runtime/runtime.h"

namespace pccl::comm {
namespace {

constexpr Duration kAnswerTimeout = std::chrono::milliseconds(500);
constexpr std::chrono::milliseconds kSurvey{1000};  // for each rank
constexpr std::chrono::milliseconds kLongestRendezvous = std::chrono::minutes(1);

Result<std::vector<Rank>> survivors_of(const Group& group, std::span<const Rank> excluded) {
    for (const Rank rank : excluded)
        if (rank < 0 || rank >= group.size() || rank == group.rank())
            return Status::invalid_argument(concat("rank ", rank, " cannot be left out by rank ",
                                                   group.rank(), " of group ", group.name(), " of ",
                                                   group.size()));
    std::vector<Rank> survivors;
    for (Rank rank = 0; rank < group.size(); ++rank)
        if (std::ranges::find(excluded, rank) == excluded.end()) survivors.push_back(rank);
    return survivors;
}

Result<bootstrap::Roster> roster_of(const Group& group, const std::vector<Rank>& survivors) {
    bootstrap::Roster roster;
    for (const Rank rank : survivors) {
        bootstrap::Endpoint endpoint = group.directory().endpoint(rank);
        endpoint.rank = static_cast<Rank>(roster.endpoints.size());
        endpoint.drop(group.directory().forbidden());
        roster.endpoints.push_back(std::move(endpoint));
    }
    PCCL_ASSIGN_OR_RETURN(roster.job, bootstrap::job_of_survivors(group.layout().job(), survivors));
    roster.costs = group.costs().text();
    return roster;
}

/// Converts an error about a rank of the smaller group to one about its rank in the old group.
Status in_old_ranks(const Status& status, const std::vector<Rank>& survivors) {
    const Rank rank = status.peer();
    if (rank < 0 || static_cast<std::size_t>(rank) >= survivors.size()) return status;
    const Rank old = survivors[static_cast<std::size_t>(rank)];
    return Status(
        status.code(),
        concat("rank ", old, ", as rank ", rank, " of the smaller group: ", status.message()), old);
}

/// Returns the answer for ranks that send requests after this process has left the group.
std::string last_word(const Shrinking& shrinking) {
    const Status why = Status::aborted(
        concat("it has gone on in a group of ", shrinking.staying, " without others"));
    return RankStatus{.broken = why, .shrinking = shrinking}.serialise();
}

/// Returns why this rank cannot query a silent one: it lacks descriptors or memory. The silent
/// rank may then be there.
Status own_shortage(const PeerSurvey& survey, Rank silent) {
    const auto answer = survey.query(silent, Deadline::after(kAnswerTimeout));
    return answer.status().code() == StatusCode::kResourceExhausted ? answer.status()
                                                                    : Status::ok();
}

/// Returns whether another list of ranks may help.
bool is_about_others(const Status& status) {
    return status.code() == StatusCode::kPeerLost || status.code() == StatusCode::kMismatch;
}

}  // namespace

Status CommunicatorImpl::check_shrink(std::span<const Rank> excluded,
                                      const ShrinkOptions& wanted) const {
    const Result<std::vector<Rank>> survivors = survivors_of(*group_, excluded);
    Status checked =
        survivors.is_ok() ? check_quorum(size(), *survivors, wanted.least) : survivors.status();
    if (checked.is_ok()) return checked;
    return checked.with_context(concat("group ", name(), " cannot be shrunk"));
}

Result<std::shared_ptr<CommunicatorImpl>> CommunicatorImpl::shrink(
    std::span<const Rank> excluded, const ShrinkOptions& wanted) const {
    PCCL_TRY(check_process());
    PCCL_TRY(check_shrink(excluded, wanted));
    PCCL_ASSIGN_OR_RETURN(const std::vector<Rank> survivors, survivors_of(*group_, excluded));
    auto shrunk = shrink_to(survivors, excluded, wanted);
    if (shrunk.is_ok()) return shrunk;
    return shrunk.status().with_context(concat("group ", name(), " cannot be shrunk"));
}

Result<std::shared_ptr<CommunicatorImpl>> CommunicatorImpl::shrink_to(
    const std::vector<Rank>& survivors, std::span<const Rank> excluded,
    const ShrinkOptions& wanted) const {
    PCCL_ASSIGN_OR_RETURN(const bootstrap::Roster roster, roster_of(*group_, survivors));
    PCCL_ASSIGN_OR_RETURN(auto layout, bootstrap::Layout::make(roster));
    CommunicatorImplOptions options = of_members(options_, survivors);
    PCCL_ASSIGN_OR_RETURN(const SelectionPreferences preferences,
                          preferences_of(roster, options.catalogue, options.algorithm));
    options.runtime = runtime_;
    options.name = wanted.name.empty() ? concat(name(), ":shrunk") : wanted.name;
    options.timeout = wanted.timeout.value_or(timeout());
    const Deadline deadline = Deadline::after(std::min(options.timeout, kLongestRendezvous));
    const PeerSurvey& survey = group_->diagnosis().survey();
    ShrinkState& shrinking = group_->diagnosis().report().shrinking();
    PCCL_TRY(shrinking.begin(excluded));
    Agreement agreement(
        {.self = rank(),
         .old = group_->directory().identity(),
         .staying = survivors,
         .left_out = {excluded.begin(), excluded.end()},
         .terms = layout->digest(),
         .query = [&](Rank peer) { return survey.query(peer, Deadline::after(kAnswerTimeout)); },
         .publish = [&](const Shrinking& now) { shrinking.publish(now); },
         .interrupted = options.interrupted,
         .deadline = deadline,
         .answer_timeout = process_config().peer_timeout});
    std::shared_ptr<CommunicatorImpl> comm;
    for (bool all_have_confirmed = false; !all_have_confirmed;) {
        PCCL_ASSIGN_OR_RETURN(const bootstrap::GroupIdentity identity, agreement.propose());
        const std::shared_ptr<Group> group(new Group(*runtime_, identity, options),
                                           LeaveToParent());
        runtime_->register_rank({identity.group, options.rank}, identity.secret, group);
        comm.reset(new CommunicatorImpl(options, group));
        // If ranks share memory, one of them sends it to the others.
        if (is_on_one_host(roster)) {
            PCCL_ASSIGN_OR_RETURN(const bool all_are_ready, agreement.await_ready());
            if (!all_are_ready) continue;
        }
        PCCL_TRY(in_old_ranks(group->connect(roster, layout, preferences, deadline), survivors));
        PCCL_TRY(join_network(options, {group, &group->phases()}));
        shrinking.renounce(excluded);
        PCCL_ASSIGN_OR_RETURN(all_have_confirmed, agreement.confirm());
    }
    runtime_->keep_answer({group_->directory().identity().group, rank()},
                          group_->directory().identity().secret, last_word(shrinking.published()));
    return comm;
}

Result<std::vector<Rank>> CommunicatorImpl::missing() const {
    const Deadline last = Deadline::after(process_config().peer_timeout);
    // The rank that made the group fail has already been silent for this time.
    const Status broken = health();
    const Rank blamed = broken.code() == StatusCode::kPeerLost ? broken.peer() : kNoRank;
    PCCL_ASSIGN_OR_RETURN(std::vector<SurveyedPeer> peers, survey(kSurvey));
    for (SurveyedPeer& peer : peers)
        while (peer.state == SurveyedPeer::Liveness::kSilent && peer.rank != blamed &&
               !last.passed())
            peer =
                group_->diagnosis().survey().query_with_last_sign(peer.rank, last.within(kSurvey));
    for (const SurveyedPeer& peer : peers)
        if (peer.state == SurveyedPeer::Liveness::kSilent)
            PCCL_TRY(own_shortage(group_->diagnosis().survey(), peer.rank));
    const std::vector<Rank> renounced = group_->diagnosis().report().shrinking().renounced();
    std::set<Rank> missing(renounced.begin(), renounced.end());
    for (const SurveyedPeer& peer : peers) {
        const Shrinking& theirs = peer.rank_status.shrinking;
        const bool is_here = peer.state == SurveyedPeer::Liveness::kHere;
        if (!is_here && theirs.stage == Shrinking::ShrinkStage::kDecided)
            return gone_on(peer.rank, theirs);
        if (!is_here) missing.insert(peer.rank);
        for (const Rank other : theirs.left_out)
            if (is_here && other >= 0 && other < size()) missing.insert(other);
        if (missing.contains(rank()))
            return Status(StatusCode::kUnavailable,
                          concat("rank ", peer.rank, " goes on without this rank"), peer.rank);
    }
    return std::vector<Rank>(missing.begin(), missing.end());
}

Result<std::shared_ptr<CommunicatorImpl>> CommunicatorImpl::shrink(
    const ShrinkOptions& wanted) const {
    const Deadline deadline = Deadline::after(kLongestRendezvous);
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(const std::vector<Rank> excluded, missing());
        if (excluded.empty())
            return Status::invalid_argument(
                concat("all ranks of ", name(), " are here; name those to leave out"));
        PCCL_TRY(check_shrink(excluded, wanted));
        group_->abort(Status::aborted("this communicator is being shrunk"));
        auto shrunk = shrink(excluded, wanted);
        if (!is_about_others(shrunk.status()) || deadline.passed()) return shrunk;
    }
}

}  // namespace pccl::comm
