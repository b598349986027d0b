// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/phase/coordinator_failover.h"

#include <utility>

#include "csrc/base/text/text.h"

namespace pccl::comm {

using SwitchResult = Switching::SwitchResult;
using Outcome = Switching::Outcome;

Result<SwitchResult> CoordinatorFailover::decide_result(const Status& lost) {
    talk_.publish_stage(Stage::kOrphaned);
    for (Rank successor = 1; successor < talk_.group().rank(); ++successor) {
        PCCL_ASSIGN_OR_RETURN(auto received, receive_from(successor));
        if (received) return *std::move(received);
    }
    PCCL_ASSIGN_OR_RETURN(SwitchResult switch_result, decide(lost));
    talk_.own().number = switch_result.number;
    talk_.publish_result(switch_result);
    return switch_result;
}

bool CoordinatorFailover::takes_no_part(Rank rank) {
    const Switching& theirs = talk_.status_of(rank).switching;
    if (theirs.stage == Stage::kOrphaned && theirs.number == talk_.own().number) return false;
    const bool has_left = theirs.number < talk_.own().number || theirs.stage == Stage::kDone;
    const bool has_given_up = theirs.stage == Stage::kGivenUp && last_.passed();
    if (has_left || has_given_up) were_ready_ = false;
    return has_left || last_.passed();
}

Result<std::optional<SwitchResult>> CoordinatorFailover::receive_from(Rank successor) {
    for (QueryPause pause;; pause.rest()) {
        if (!talk_.query(successor).is_ok()) return std::optional<SwitchResult>();
        if (talk_.has_result(successor))
            return std::optional(talk_.status_of(successor).switching.switch_result);
        if (takes_no_part(successor)) return std::optional<SwitchResult>();
        PCCL_TRY(talk_.group().check_interrupt());
    }
}

Status CoordinatorFailover::await_answer_of(Rank rank) {
    for (QueryPause pause;; pause.rest()) {
        if (!talk_.query(rank).is_ok() || talk_.has_result(rank)) return Status::ok();
        if (talk_.status_of(rank).switching.stage == Stage::kOrphaned) return Status::ok();
        if (takes_no_part(rank)) return Status::ok();
        PCCL_TRY(talk_.group().check_interrupt());
    }
}

Result<SwitchResult> CoordinatorFailover::decide(const Status& lost) {
    for (const Rank rank : talk_.others()) {
        PCCL_TRY(await_answer_of(rank));
        if (talk_.has_result(rank)) return talk_.status_of(rank).switching.switch_result;
    }
    SwitchResult switch_result = were_ready_
                                     ? as_switches_show(lost)
                                     : SwitchResult{.outcome = Outcome::kStayed, .why = lost};
    switch_result.number = talk_.own().number;
    return switch_result;
}

SwitchResult CoordinatorFailover::as_switches_show(const Status& lost) const {
    const auto unknown = [&](std::string_view why) {
        return SwitchResult{
            .outcome = Outcome::kUnknown,
            .why = Status(lost.code(),
                          concat(lost.message(), "; degraded, as it may have had the ",
                                 "switches commit to ", talk_.own().proposal, ": ", why),
                          lost.peer())};
    };
    if (lost.code() != StatusCode::kPeerLost) return unknown("it may yet do so");
    if (!read_back_) return unknown("nobody else can read them");
    const Result<bool> is_switched = read_back_();
    if (!is_switched.is_ok()) return unknown(is_switched.status().message());
    return {.outcome = *is_switched ? Outcome::kSwitched : Outcome::kStayed, .why = lost};
}

}  // namespace pccl::comm
