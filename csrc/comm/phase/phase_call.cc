#include "csrc/comm/phase/phase_call.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <utility>

#include "csrc/base/background_thread.h"
#include "csrc/base/listed.h"
#include "csrc/base/text.h"

namespace pccl::comm {
namespace {

constexpr Duration kShortestPause = std::chrono::microseconds(100);
// All ask rank 0, which answers some ten thousand questions a second.
constexpr Duration kPausePerRank = std::chrono::microseconds(100);
constexpr Duration kOneAnswer = std::chrono::milliseconds(500);
constexpr std::size_t kAskedAtOnce = 16;

/// Between two questions: longer each time.
class Pause {
   public:
    explicit Pause(int ranks) : longest_(std::max(ranks * kPausePerRank, kShortestPause)) {}
    void rest() {
        system_clock().sleep_for(next_);
        next_ = std::min(2 * next_, longest_);
    }

   private:
    Duration next_ = kShortestPause;
    const Duration longest_;
};

std::string what_it_does(const Situation& rank, std::uint64_t number) {
    if (!rank.operation.empty()) return concat("is in ", rank.operation);
    return rank.switching.number < number ? "has not called switch_phase"
                                          : "still has operations under way";
}

}  // namespace

PhaseCall::PhaseCall(PhaseCallOptions options)
    : options_(std::move(options)),
      own_(options_.group.switching().told()),
      told_(static_cast<std::size_t>(options_.group.size())),
      answered_(told_.size(), system_clock().now()) {
    ++own_.number;
    own_.wish = options_.wish;
    own_.phases = options_.phases;
    own_.why = Status::ok();
    own_.groups.clear();
    say(Stage::kCalled);
}

void PhaseCall::say(Stage stage) {
    own_.stage = stage;
    options_.group.switching().tell(own_);
}

Status PhaseCall::drain() {
    Pause pause(options_.group.size());
    for (std::string under_way;; pause.rest()) {
        PCCL_TRY(drain_once(under_way));
        if (under_way.empty()) break;
        if (options_.deadline.passed()) return Status::timeout(concat("still has ", under_way));
        PCCL_TRY(options_.group.check_interrupt());
    }
    for (const auto& group : options_.groups) own_.groups.push_back(group->progress());
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

Status PhaseCall::ask(Rank rank) {
    const auto index = static_cast<std::size_t>(rank);
    Result<Situation> answer = options_.group.ask(rank, Deadline::after(kOneAnswer));
    if (answer.is_ok()) {
        answered_[index] = system_clock().now();
        told_[index] = *std::move(answer);
        return Status::ok();
    }
    if (answer.status().code() == StatusCode::kPeerLost) return answer.status();
    if (system_clock().now() - answered_[index] < options_.patience) return Status::ok();
    return Status::timeout(concat("rank ", rank, " does not answer while phases are switched: ",
                                  answer.status().message()),
                           rank);
}

std::vector<Status> PhaseCall::ask_all(const std::vector<Rank>& ranks) {
    std::vector<Status> answers(ranks.size());
    std::atomic<std::size_t> next{0};
    const auto ask_some = [&] {
        for (std::size_t i = next++; i < ranks.size(); i = next++) answers[i] = ask(ranks[i]);
    };
    {
        std::vector<std::unique_ptr<BackgroundThread>> helpers;
        for (std::size_t count = 1; count < std::min(ranks.size(), kAskedAtOnce); ++count)
            helpers.push_back(std::make_unique<BackgroundThread>("pccl-ask", ask_some));
        ask_some();
    }
    return answers;
}

Status PhaseCall::why_over(Rank rank, const Status& asked) const {
    PCCL_TRY(options_.group.health());
    PCCL_TRY(asked);
    return told_by(rank).broken;
}

std::vector<Rank> PhaseCall::others() const {
    std::vector<Rank> ranks;
    for (Rank rank = 1; rank < options_.group.size(); ++rank) ranks.push_back(rank);
    return ranks;
}

bool PhaseCall::has_ended() const { return told_by(0).switching.verdict.number >= own_.number; }

bool PhaseCall::has_controller() const {
    const Switching& theirs = told_by(0).switching;
    return theirs.number >= own_.number;
}

Status PhaseCall::why_leave(const Status& own) const {
    PCCL_TRY(options_.group.check_interrupt());
    if (told_by(0).sequence > collectives_ && own.is_ok()) return out_of_order(0);
    if (!options_.deadline.passed()) return Status::ok();
    return own.is_ok() ? late({0}) : own;
}

Result<Switching::Verdict> PhaseCall::follow() {
    own_.why = options_.own.is_ok() ? drain() : options_.own;
    say(own_.why.is_ok() ? Stage::kReady : Stage::kGivenUp);
    Status leaving;
    for (Pause pause(options_.group.size());; pause.rest()) {
        const Status asked = ask(0);
        // Before a look at the group: those who know how it ended leave, and that ends the group.
        if (has_ended()) break;
        if (const Status over = why_over(0, asked); !over.is_ok()) {
            say(Stage::kDone);
            // All refuse what one does by itself, and rank 0 may have done so, and gone.
            return options_.own.is_ok() ? over : options_.own;
        }
        if (has_controller()) continue;
        if (!leaving.is_ok()) return leaving;
        leaving = why_leave(own_.why);
        if (leaving.is_ok()) continue;
        own_.why = leaving;
        say(Stage::kGivenUp);
    }
    const Switching::Verdict verdict = told_by(0).switching.verdict;
    own_.number = verdict.number;
    say(Stage::kDone);
    return verdict;
}

Status PhaseCall::gather() {
    PCCL_TRY(options_.own);
    PCCL_TRY(drain());
    say(Stage::kReady);
    std::vector<Rank> missing = others();
    for (Pause pause(options_.group.size()); !missing.empty(); pause.rest()) {
        const std::vector<Status> answers = ask_all(missing);
        std::vector<Rank> left;
        for (std::size_t i = 0; i < missing.size(); ++i) {
            PCCL_TRY(why_over(missing[i], answers[i]));
            PCCL_TRY(catch_up(missing[i]));
            PCCL_ASSIGN_OR_RETURN(const bool is_here, is_ready(missing[i]));
            if (!is_here) left.push_back(missing[i]);
        }
        missing = std::move(left);
        if (!missing.empty() && options_.deadline.passed()) return late(missing);
        PCCL_TRY(options_.group.check_interrupt());
    }
    return compare_progress();
}

Status PhaseCall::catch_up(Rank rank) {
    const std::uint64_t theirs = told_by(rank).switching.number;
    if (theirs <= own_.number) return Status::ok();
    own_.number = theirs - 1;
    return Status::timeout(
        concat("rank ", rank, " had given up waiting for rank 0 when that called switch_phase"),
        rank);
}

Result<bool> PhaseCall::is_ready(Rank rank) const {
    const Situation& it = told_by(rank);
    const Switching& theirs = it.switching;
    if (theirs.number < own_.number) {
        if (it.sequence > collectives_) return out_of_order(rank);
        return false;
    }
    if (theirs.wish != own_.wish)
        return Status::mismatch(
            rank, concat("ranks disagree about the phase: rank 0 switches to ", own_.wish,
                         " but rank ", rank, " switches to ", theirs.wish));
    if (theirs.phases != own_.phases)
        return Status::mismatch(
            rank, concat("rank ", rank, " has another description of the cluster than rank 0"));
    if (theirs.stage == Stage::kGivenUp)
        return Status(theirs.why.code(), concat("rank ", rank, ": ", theirs.why.message()), rank);
    return theirs.stage == Stage::kReady;
}

Status PhaseCall::compare_progress() const {
    std::map<std::uint64_t, std::vector<std::pair<Rank, Switching::Progress>>> by_group;
    const auto add = [&](Rank rank, const std::vector<Switching::Progress>& groups) {
        for (const Switching::Progress& each : groups)
            by_group[each.group].emplace_back(rank, each);
    };
    add(0, own_.groups);
    for (Rank rank = 1; rank < options_.group.size(); ++rank)
        add(rank, told_by(rank).switching.groups);
    for (const auto& [group, members] : by_group) {
        const auto& [first, reference] = members.front();
        if (members.size() != reference.ranks) continue;  // closed on some
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

bool PhaseCall::is_told(Rank rank) const {
    const Switching& theirs = told_by(rank).switching;
    return theirs.number != own_.number || theirs.stage == Stage::kDone;
}

void PhaseCall::tell(Switching::Verdict verdict) {
    verdict.number = own_.number;
    own_.verdict = std::move(verdict);
    say(Stage::kDone);
    const Deadline last = Deadline::after(options_.patience);
    std::vector<Rank> untold = others();
    for (Pause pause(options_.group.size()); !untold.empty() && !last.passed(); pause.rest()) {
        const std::vector<Status> answers = ask_all(untold);
        std::vector<Rank> left;
        for (std::size_t i = 0; i < untold.size(); ++i)
            // Who does not answer hears of it in other ways.
            if (answers[i].is_ok() && !is_told(untold[i])) left.push_back(untold[i]);
        untold = std::move(left);
    }
}

Status PhaseCall::late(const std::vector<Rank>& missing) const {
    const Rank first = missing.front();
    return Status::timeout(concat("the switch to phase ", own_.wish, " waits for ", listed(missing),
                                  ": rank ", first, " ", what_it_does(told_by(first), own_.number)),
                           first);
}

Status PhaseCall::out_of_order(Rank rank) const {
    const Situation& it = told_by(rank);
    const std::string operation =
        it.operation.empty() ? concat("collective #", it.sequence) : it.operation;
    return Status::mismatch(
        rank, concat("ranks disagree about what comes next: rank ", options_.group.rank(),
                     " switches to phase ", own_.wish, " but rank ", rank, " runs ", operation));
}

}  // namespace pccl::comm
