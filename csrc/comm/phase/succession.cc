#include "csrc/comm/phase/succession.h"

#include <utility>

#include "csrc/base/text.h"

namespace pccl::comm {

using Verdict = Switching::Verdict;
using Outcome = Switching::Outcome;

Result<Verdict> Succession::settle(const Status& lost) {
    talk_.say(Stage::kOrphaned);
    for (Rank heir = 1; heir < talk_.group().rank(); ++heir) {
        PCCL_ASSIGN_OR_RETURN(auto told, hear_from(heir));
        if (told) return *std::move(told);
    }
    PCCL_ASSIGN_OR_RETURN(Verdict verdict, decide(lost));
    talk_.own().number = verdict.number;
    talk_.tell(verdict);
    return verdict;
}

bool Succession::takes_no_part(Rank rank) {
    const Switching& theirs = talk_.told_by(rank).switching;
    if (theirs.stage == Stage::kOrphaned && theirs.number == talk_.own().number) return false;
    const bool has_left = theirs.number < talk_.own().number || theirs.stage == Stage::kDone;
    const bool has_given_up = theirs.stage == Stage::kGivenUp && last_.passed();
    if (has_left || has_given_up) were_ready_ = false;
    return has_left || last_.passed();
}

Result<std::optional<Verdict>> Succession::hear_from(Rank heir) {
    for (AskingPause pause;; pause.rest()) {
        if (!talk_.ask(heir).is_ok()) return std::optional<Verdict>();
        if (talk_.has_verdict(heir)) return std::optional(talk_.told_by(heir).switching.verdict);
        if (takes_no_part(heir)) return std::optional<Verdict>();
        PCCL_TRY(talk_.group().check_interrupt());
    }
}

Status Succession::hear_out(Rank rank) {
    for (AskingPause pause;; pause.rest()) {
        if (!talk_.ask(rank).is_ok() || talk_.has_verdict(rank)) return Status::ok();
        if (talk_.told_by(rank).switching.stage == Stage::kOrphaned) return Status::ok();
        if (takes_no_part(rank)) return Status::ok();
        PCCL_TRY(talk_.group().check_interrupt());
    }
}

Result<Verdict> Succession::decide(const Status& lost) {
    for (const Rank rank : talk_.others()) {
        PCCL_TRY(hear_out(rank));
        if (talk_.has_verdict(rank)) return talk_.told_by(rank).switching.verdict;
    }
    Verdict verdict =
        were_ready_ ? as_switches_show(lost) : Verdict{.outcome = Outcome::kStayed, .why = lost};
    verdict.number = talk_.own().number;
    return verdict;
}

Verdict Succession::as_switches_show(const Status& lost) const {
    const auto unknown = [&](std::string_view why) {
        return Verdict{.outcome = Outcome::kUnknown,
                       .why = Status(lost.code(),
                                     concat(lost.message(), "; degraded, as it may have had the ",
                                            "switches commit to ", talk_.own().wish, ": ", why),
                                     lost.peer())};
    };
    if (lost.code() != StatusCode::kPeerLost) return unknown("it may yet do so");
    if (!read_back_) return unknown("nobody else can read them");
    const Result<bool> is_switched = read_back_();
    if (!is_switched.is_ok()) return unknown(is_switched.status().message());
    return {.outcome = *is_switched ? Outcome::kSwitched : Outcome::kStayed, .why = lost};
}

}  // namespace pccl::comm
