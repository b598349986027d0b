// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/phase/phase_call.h"

#include <algorithm>
#include <map>
#include <utility>

#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"
#include "csrc/comm/diagnosis/wait_for_graph.h"

namespace pccl::comm {
namespace {

/// Interval of requests to ranks that have not called.
constexpr Duration kBetweenRounds = std::chrono::milliseconds(20);

std::string what_it_does(const RankStatus& rank, std::uint64_t number) {
    if (!rank.operation.empty()) return concat("is in ", rank.operation);
    return rank.switching.number < number ? "has not called switch_phase"
                                          : "still has operations under way";
}

}  // namespace

PhaseCall::PhaseCall(PhaseCallOptions options)
    : options_(std::move(options)), talk_(options_.group, options_.answer_timeout) {
    Switching& own = talk_.own();
    ++own.number;
    own.proposal = options_.proposal;
    own.phases = options_.phases;
    own.why = Status::ok();
    own.groups.clear();
    talk_.publish_stage(Stage::kCalled);
}

Status PhaseCall::drain() {
    // Each iteration also makes progress on operations in flight.
    constexpr Duration kBetweenLooks = std::chrono::microseconds(200);
    for (std::string under_way;; system_clock().sleep_for(kBetweenLooks)) {
        PCCL_TRY(drain_once(under_way));
        if (under_way.empty()) break;
        if (options_.deadline.passed()) return Status::timeout(concat("still has ", under_way));
        PCCL_TRY(options_.group.check_interrupt());
    }
    for (const auto& group : options_.groups) talk_.own().groups.push_back(group->progress());
    collectives_ = options_.group.progress().collectives;
    return Status::ok();
}

Status PhaseCall::drain_once(std::string& under_way) {
    under_way.clear();
    for (const auto& group : options_.groups) {
        PCCL_ASSIGN_OR_RETURN(const bool is_drained, group->drain());
        if (!is_drained) under_way = concat(group->under_way(), " under way in ", group->name());
    }
    return Status::ok();
}

Status PhaseCall::why_over(Rank rank, const Status& queried) const {
    PCCL_TRY(options_.group.health());
    PCCL_TRY(queried);
    const RankStatus& theirs = status_of(rank);
    if (theirs.broken.code() != StatusCode::kAborted) return theirs.broken;
    // A group that the rank ended itself is over for the other ranks, too.
    return why_lost(rank, theirs, options_.group.rank(), options_.group.size());
}

bool PhaseCall::has_controller() const { return status_of(0).switching.number >= number(); }

Status PhaseCall::why_leave(const Status& own) const {
    PCCL_TRY(options_.group.check_interrupt());
    PCCL_TRY(why_over(0, Status::ok()));
    if (status_of(0).sequence > collectives_ && own.is_ok()) return out_of_order(0);
    if (!options_.deadline.passed()) return Status::ok();
    return own.is_ok() ? timed_out({0}) : own;
}

Result<Switching::SwitchResult> PhaseCall::participate() {
    Status& why = talk_.own().why;
    why = options_.own.is_ok() ? drain() : options_.own;
    was_ready_ = why.is_ok();
    talk_.publish_stage(was_ready_ ? Stage::kReady : Stage::kGivenUp);
    PCCL_ASSIGN_OR_RETURN(Switching::SwitchResult switch_result, await_result());
    talk_.own().number = switch_result.number;
    talk_.own().switch_result = switch_result;
    talk_.publish_stage(Stage::kDone);
    return switch_result;
}

Result<Switching::SwitchResult> PhaseCall::await_result() {
    Status leaving;
    // Rank 0 sends requests to all when it calls, and when it has the result.
    for (QueryPause pause = QueryPause::until_rung();; pause.rest()) {
        const Status queried = talk_.query(0);
        if (talk_.has_result(0)) return status_of(0).switching.switch_result;
        if (!queried.is_ok()) return go_on_without_controller(queried);
        // Rank 0 completes a switch that it has started, even if other ranks are gone, and then
        // publishes the result.
        if (has_controller()) continue;
        if (!leaving.is_ok()) return leave(leaving);
        leaving = why_leave(talk_.own().why);
        if (leaving.is_ok()) continue;
        talk_.own().why = leaving;
        talk_.publish_stage(Stage::kGivenUp);
    }
}

Status PhaseCall::leave(const Status& why) {
    // Rank 0 will not request a reason from here: its group is over, too.
    if (why.code() == StatusCode::kPeerLost) talk_.publish_stage(Stage::kDone);
    // A local error takes precedence: every rank reports the same one.
    return options_.own.is_ok() ? why : options_.own;
}

Result<Switching::SwitchResult> PhaseCall::go_on_without_controller(const Status& lost) {
    if (!was_ready_) return leave(lost);
    talk_.own().why = Status::ok();
    return CoordinatorFailover(talk_, options_.read_back, options_.answer_timeout)
        .decide_result(lost);
}

Status PhaseCall::gather() {
    PCCL_TRY(options_.own);
    PCCL_TRY(drain());
    talk_.publish_stage(Stage::kReady);
    std::vector<Rank> missing = talk_.others();
    Deadline round = Deadline::after(Duration::zero());
    for (QueryPause pause = QueryPause::until_rung(); !missing.empty(); pause.rest()) {
        // Ready ranks send requests here; ranks that are gone do not.
        const bool queries_all = round.passed();
        if (queries_all) round = Deadline::after(kBetweenRounds);
        PCCL_TRY(receive_from(queries_all ? missing : talk_.with_news(missing), missing));
        if (!missing.empty() && options_.deadline.passed()) return timed_out(missing);
        PCCL_TRY(options_.group.check_interrupt());
    }
    return compare_progress();
}

void PhaseCall::publish_result(Switching::SwitchResult switch_result) {
    switch_result.had_all = std::ranges::all_of(
        talk_.others(), [this](Rank rank) { return status_of(rank).switching.number >= number(); });
    talk_.publish_result(std::move(switch_result));
}

Status PhaseCall::receive_from(const std::vector<Rank>& ranks, std::vector<Rank>& missing) {
    const std::vector<Status> answers = talk_.query_all(ranks);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        PCCL_TRY(why_over(ranks[i], answers[i]));
        PCCL_TRY(catch_up(ranks[i]));
        PCCL_ASSIGN_OR_RETURN(const bool is_here, is_ready(ranks[i]));
        if (is_here) std::erase(missing, ranks[i]);
    }
    return Status::ok();
}

Status PhaseCall::catch_up(Rank rank) {
    const std::uint64_t theirs = status_of(rank).switching.number;
    if (theirs <= number()) return Status::ok();
    talk_.own().number = theirs - 1;
    return Status::timeout(
        concat("rank ", rank, " had given up waiting for rank 0 when that called switch_phase"),
        rank);
}

Result<bool> PhaseCall::is_ready(Rank rank) const {
    const RankStatus& it = status_of(rank);
    const Switching& theirs = it.switching;
    if (theirs.number < number()) {
        if (it.sequence > collectives_) return out_of_order(rank);
        return false;
    }
    if (theirs.proposal != options_.proposal)
        return Status::mismatch(
            rank, concat("ranks disagree about the phase: rank 0 switches to ", options_.proposal,
                         " but rank ", rank, " switches to ", theirs.proposal));
    if (theirs.phases != options_.phases)
        return Status::mismatch(
            rank, concat("rank ", rank, " has another description of the cluster than rank 0"));
    if (theirs.stage == Stage::kGivenUp)
        return Status(theirs.why.code(), concat("rank ", rank, ": ", theirs.why.message()), rank);
    return theirs.stage == Stage::kReady;
}

Status PhaseCall::compare_progress() const {
    std::map<std::uint64_t, std::vector<std::pair<Rank, Switching::GroupProgress>>> by_group;
    const auto add = [&](Rank rank, const std::vector<Switching::GroupProgress>& groups) {
        for (const Switching::GroupProgress& each : groups)
            by_group[each.group].emplace_back(rank, each);
    };
    add(0, talk_.own().groups);
    for (Rank rank = 1; rank < options_.group.size(); ++rank)
        add(rank, status_of(rank).switching.groups);
    for (const auto& [group, members] : by_group) {
        const auto& [first, reference] = members.front();
        if (members.size() != reference.ranks) continue;  // closed on some ranks
        std::uint64_t sent = 0;
        std::uint64_t received = 0;
        for (const auto& [rank, each] : members) {
            sent += each.sent;
            received += each.received;
            if (each.collectives != reference.collectives)
                return Status::mismatch(
                    rank, concat("rank ", first, " has called ", reference.collectives,
                                 " collectives of a group, rank ", rank, " ", each.collectives,
                                 " of the same: switch between collectives, not within one"));
        }
        if (sent > received)
            return Status::unavailable(
                concat(sent - received,
                       " of the messages that were sent have not been received: "
                       "receive them before the phase is switched"));
    }
    return Status::ok();
}

Status PhaseCall::timed_out(const std::vector<Rank>& missing) const {
    const Rank first = missing.front();
    return Status::timeout(
        concat("the switch to phase ", options_.proposal, " waits for ", listed(missing), ": rank ",
               first, " ", what_it_does(status_of(first), number())),
        first);
}

Status PhaseCall::out_of_order(Rank rank) const {
    const RankStatus& it = status_of(rank);
    const std::string operation =
        it.operation.empty() ? concat("collective #", it.sequence) : it.operation;
    return Status::mismatch(
        rank,
        concat("ranks disagree about the next operation: rank ", options_.group.rank(),
               " switches to phase ", options_.proposal, " but rank ", rank, " runs ", operation));
}

}  // namespace pccl::comm
