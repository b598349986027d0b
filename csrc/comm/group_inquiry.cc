// What a group does while nothing moves: it asks other ranks, and answers them.
#include <algorithm>
#include <chrono>
#include <utility>

#include "csrc/base/listed.h"
#include "csrc/base/log.h"
#include "csrc/base/scope_exit.h"
#include "csrc/base/text.h"
#include "csrc/comm/group.h"
#include "csrc/comm/membership/agreement.h"
#include "csrc/runtime/flight/flight_dump.h"

namespace pccl::comm {
namespace {

constexpr Duration kPatience = std::chrono::milliseconds(600);  // with one rank
constexpr Duration kGlance = std::chrono::milliseconds(200);    // while there is time
constexpr Duration kInquest = std::chrono::milliseconds(1500);  // with all of them
constexpr Duration kIdle = std::chrono::milliseconds(10);
constexpr Duration kBetweenLooks = std::chrono::milliseconds(20);
constexpr Duration kLongIdle = std::chrono::milliseconds(300);
constexpr Duration kBetweenQuestions = std::chrono::milliseconds(500);  // more in large groups
constexpr Duration kBetweenQuestionsPerRank = std::chrono::milliseconds(10);
constexpr Duration kSecondOpinion = std::chrono::milliseconds(100);
constexpr Duration kLastWords = std::chrono::milliseconds(300);
constexpr Duration kTelling = std::chrono::milliseconds(1000);
constexpr Duration kTellingOne = std::chrono::milliseconds(300);
constexpr std::size_t kMostAsked = 4;
constexpr std::size_t kMostRemembered = 64;
constexpr int kTries = 20;
constexpr Duration kBetweenTries = std::chrono::milliseconds(1);

std::vector<Rank> ranks_of(const AwaitedRanks& awaited) {
    std::vector<Rank> ranks;
    for (const Awaited& one : awaited)
        if (one.rank != kNoRank) ranks.push_back(one.rank);
    return ranks;
}

}  // namespace

Result<Situation> Group::ask(Rank rank, Deadline deadline) const {
    if (rank == rank_) return whole_situation();
    auto answer = peers_.ask(rank, deadline);
    if (!answer.is_ok()) return answer;
    answered_[static_cast<std::size_t>(rank)].store(system_clock().now());
    answer->elsewhere.awaits_asker = comm::is_awaited(runtime_, answer->elsewhere);
    answer->elsewhere.lacks_asker = comm::is_lacking(runtime_, answer->elsewhere);
    return answer;
}

PeerHealth Group::health_of(Rank rank, Deadline deadline) const {
    const auto answer = ask(rank, deadline);
    PeerHealth health{.rank = rank};
    if (answer.is_ok()) {
        health.detail = answer->broken.message();
        health.situation = *answer;
        health.last_sign = Duration::zero();
        const Shrinking& theirs = answer->shrinking;
        if (theirs.stage != Shrinking::Stage::kDecided || theirs.pact == shrinking_.told().pact)
            return health;
        health.state = PeerHealth::State::kGone;
        health.detail = gone_on(rank, theirs).message();
        return health;
    }
    const bool is_gone = answer.status().code() == StatusCode::kPeerLost;
    health.state = is_gone ? PeerHealth::State::kGone : PeerHealth::State::kSilent;
    health.detail = answer.status().message();
    if (const TimePoint last = last_sign_of(rank); last != TimePoint{})
        health.last_sign = system_clock().now() - last;
    return health;
}

TimePoint Group::last_sign_of(Rank rank) const {
    TimePoint last = answered_[static_cast<std::size_t>(rank)].load();
    for (const runtime::FlightEntry& entry : runtime::flight_recorder().entries())
        if (entry.group == flight_group_ && is_sign_of(rank, entry, rank_))
            last = std::max(last, entry.finished);
    return last;
}

std::unique_lock<std::mutex> Group::lock_soon() const {
    std::unique_lock lock(mutex_, std::try_to_lock);
    for (int i = 0; i < kTries && !lock.owns_lock(); ++i) {
        system_clock().sleep_for(kBetweenTries);
        static_cast<void>(lock.try_lock());
    }
    return lock;
}

Situation Group::situation() const {
    Situation situation{.broken = heard_.is_set() ? heard_.get() : Status::ok(),
                        .sequence = sequence_.load(),
                        .shrinking = shrinking_.told()};
    // Somebody may hold the lock while the group is made: the acceptor must not wait for that.
    const Rank reaching = peers_.reaching();
    if (reaching != kNoRank) situation.awaited = {reaching};
    const auto lock = lock_soon();
    situation.is_whole = lock.owns_lock() || !situation.awaited.empty();
    if (!lock.owns_lock()) return situation;
    if (!cause_.is_ok()) situation.broken = cause_;
    if (!collectives_.empty()) situation.operation = collectives_.front()->describe();
    for (const Rank rank : ranks_of(awaited()))
        if (rank != reaching) situation.awaited.push_back(rank);
    return situation;
}

Situation Group::whole_situation() const {
    Situation whole = situation();
    for (const runtime::FlightWait& wait : runtime::flight_recorder().waits(name_, rank_)) {
        if (whole.gpu_operation.empty()) whole.gpu_operation = wait.operation;
        if (wait.operation == whole.gpu_operation) whole.gpu_awaited.push_back(wait.peer);
    }
    return whole;
}

std::string Group::describe() const {
    Situation answer = whole_situation();
    answer.recent = runtime::flight_recorder().recent(flight_group_, Situation::kMostRecent);
    answer.elsewhere = blocked_outside(runtime_, id());
    answer.is_whole = answer.is_whole && answer.elsewhere.is_known;
    answer.has_one_thread = runtime_.has_one_thread();
    return answer.serialise();
}

bool Group::can_be_awaited(std::span<const Rank> awaited) const {
    return !is_over_.load() && std::ranges::find(awaited, rank_) != awaited.end();
}

Elsewhere Group::blocked_in() const {
    Elsewhere there{.name = name_, .rank = rank_};
    if (waiting_.load() == 0) return there;
    const auto lock = lock_soon();
    there.is_known = lock.owns_lock();
    if (!there.is_known || collectives_.empty()) return there;
    there.operation = collectives_.front()->describe();
    there.sequence = collectives_.front()->sequence();
    there.awaited = ranks_of(collectives_.front()->awaited());
    return there;
}

Status Group::look_at(std::span<const bootstrap::Endpoint> joined) const {
    for (const bootstrap::Endpoint& endpoint : joined) {
        if (endpoint.rank == rank_) continue;
        const auto answer = peers_.ask(endpoint, Deadline::after(kGlance));
        PCCL_TRY(why_lost(endpoint.rank, answer, rank_, size_));
    }
    return Status::ok();
}

Status Group::look_at_members(std::uint64_t suspect) {
    {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock.owns_lock() || !broken_.is_ok() || !peers_.directory().knows_peers())
            return Status::ok();
        PCCL_TRY(peers_.look());
    }
    const Rank rank = place_of(suspect, global_ranks_);
    if (rank == kNoRank || rank == rank_) return Status::ok();
    return why_lost(rank, ask(rank, Deadline::after(kGlance)), rank_, size_);
}

std::optional<LostMember> Group::look_for_lost(std::uint64_t suspect) {
    if (const Status gone = look_at_members(suspect); !gone.is_ok()) give_up(gone);
    const std::lock_guard lock(mutex_);
    const Rank peer = cause_.peer();
    const bool is_known = peer >= 0 && static_cast<std::size_t>(peer) < global_ranks_.size();
    if (cause_.code() != StatusCode::kPeerLost || !is_known) return std::nullopt;
    const Status way = peers_.directory().way_to(peer).status();
    return LostMember{global_ranks_[static_cast<std::size_t>(peer)],
                      way.is_ok() ? cause_.with_process(broken_.process()) : way};
}

std::optional<LostMember> Group::look_for_holdup(std::uint64_t suspect, Deadline deadline) {
    const Rank rank = place_of(suspect, global_ranks_);
    if (rank == kNoRank || rank == rank_ || !is_made()) return std::nullopt;
    Status found = known_end(rank);
    if (found.is_ok()) found = whom_awaits(rank, deadline);
    // Who has left instead of answering has said why before.
    if (found.code() == StatusCode::kPeerLost) found = known_end(rank);
    const Rank last = found.peer();
    if (found.code() != StatusCode::kTimeout || last < 0 || last >= size_) return std::nullopt;
    return LostMember{global_ranks_[static_cast<std::size_t>(last)], found};
}

Status Group::known_end(Rank rank) {
    if (heard_.is_set()) return heard_.get();
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return Status::ok();
    return cause_.is_ok() ? peers_.look(rank) : cause_;
}

bool Group::is_made() const {
    // Whoever makes the group holds it for long.
    const std::unique_lock lock(mutex_, std::try_to_lock);
    return lock.owns_lock() && peers_.directory().knows_peers();
}

Status Group::whom_awaits(Rank rank, Deadline deadline) const {
    const Stall stall{.self = rank_,
                      .ranks = size_,
                      .group = name_,
                      .awaited = {{.rank = rank, .act = Awaited::Act::kJoin}}};
    return find_culprit(stall,
                        [&](Rank asked) { return peers_.ask(asked, deadline.within(kPatience)); });
}

void Group::look_around(Duration idle) {
    if (idle > kIdle) look_at_awaited();
    if (idle > kLongIdle) ask_awaited();
    if (notice_.is_due(idle)) say_whom_it_awaits(idle);
}

void Group::say_whom_it_awaits(Duration idle) const {
    const Situation now = situation();
    if (!now.broken.is_ok() || now.awaited.empty()) return;
    const Rank first = now.awaited.front();
    std::string process;
    if (peers_.directory().knows_peers() && now.awaited.size() == 1) {
        const bootstrap::Endpoint& peer = peers_.directory().endpoint(first);
        process = concat(" (process ", peer.pid, " on ", peer.host, ")");
    }
    log(LogLevel::kWarning, "group ", name_, ": rank ", rank_, " has waited ", in_seconds(idle),
        " for ", listed(now.awaited), process, " in ",
        now.operation.empty() ? "messages" : now.operation);
}

void Group::look_at_awaited() {
    const TimePoint now = system_clock().now();
    if (now - looked_.load() < kBetweenLooks) return;
    looked_.store(now);
    Status gone;
    {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock.owns_lock() || !broken_.is_ok() || !peers_.directory().knows_peers()) return;
        for (const Awaited& peer : awaited())
            if (gone.is_ok() && peer.rank != kNoRank) gone = peers_.look(peer.rank);
        if (gone.is_ok()) gone = peers_.look_for_failure();
    }
    if (!gone.is_ok()) give_up(gone);
}

void Group::give_up(const Status& why) {
    if (!advance()) break_from_outside(why);
}

void Group::ask_awaited() {
    const TimePoint now = system_clock().now();
    if (now - asked_.load() < kBetweenQuestions + size_ * kBetweenQuestionsPerRank) return;
    if (inquiring_.exchange(true)) return;
    const ScopeExit done([this] { inquiring_.store(false); });
    asked_.store(now);
    std::vector<Rank> ranks = situation().awaited;
    if (ranks.size() > kMostAsked) ranks.resize(kMostAsked);
    for (const Rank rank : ranks) {
        const auto answer = ask(rank, Deadline::after(kGlance).unless(aborted_));
        const Status verdict = judge(rank, answer);
        if (!verdict.is_ok()) return give_up(verdict);
    }
}

Status Group::why_late(const Status& late) const {
    if (late.code() != StatusCode::kTimeout || late.peer() == kNoRank) return late;
    return whom_awaits(late.peer(), Deadline::after(kInquest).unless(aborted_));
}

Stall Group::stall() const {
    Stall stall{.self = rank_, .ranks = size_, .group = name_};
    if (collectives_.empty()) return stall;
    stall.sequence = collectives_.front()->sequence();
    stall.header = collectives_.front()->header();
    stall.awaited = collectives_.front()->awaited();
    return stall;
}

Status Group::judge(Rank rank, const Result<Situation>& answer) {
    PCCL_TRY(why_lost(rank, answer, rank_, size_));
    if (!answer.is_ok()) return Status::ok();
    Stall own;
    {
        const std::lock_guard lock(mutex_);
        own = stall();
    }
    PCCL_TRY(why_different(own, rank, *answer));
    // Another thread could still call what is waited for: only time can tell then.
    const bool is_certain = waiting_.load() > 0 && runtime_.has_one_thread() &&
                            answer->has_one_thread && is_crossed(own, *answer);
    if (!stays_out_of_order(own, *answer) || !is_certain) return Status::ok();
    fail_crossed(own, answer->elsewhere);
    return crossed(own, rank, answer->elsewhere);
}

bool Group::stays_out_of_order(const Stall& stall, const Situation& answer) {
    if (!is_out_of_order(stall, answer)) return false;
    if (seen_out_of_order_.size() > kMostRemembered) seen_out_of_order_.clear();
    const Elsewhere& there = answer.elsewhere;
    return !seen_out_of_order_.insert(concat(stall.sequence, " ", there.name, " ", there.sequence))
                .second;
}

void Group::fail_crossed(const Stall& stall, const Elsewhere& there) {
    const Status why = crossed(stall, there.rank, there);
    fail_group(runtime_, there.group, why);
}

Status Group::reconsidered(const Status& cause) {
    if (cause.code() == StatusCode::kAborted) return cause;
    const Rank told_by = heard_from_.load();
    // Both sides of it may lie here, and say more than the word of another rank.
    if (cause.code() == StatusCode::kMismatch && told_by != kNoRank)
        PCCL_TRY(peers_.compare_latest(last_));
    const bool is_lost = cause.code() == StatusCode::kPeerLost;
    // What another has found says more than that it did not come.
    const bool may_be_known = is_lost || cause.code() == StatusCode::kTimeout;
    if (may_be_known && peers_.directory().knows_peers()) PCCL_TRY(peers_.look_for_failure());
    const Rank witness = told_by == kNoRank && is_lost ? cause.peer() : told_by;
    if (witness < 0 || witness >= size_ || witness == rank_ || !peers_.directory().knows_peers())
        return cause;
    const auto answer = peers_.ask(witness, Deadline::after(kSecondOpinion).unless(aborted_));
    Status why = answer.is_ok() ? why_lost(witness, answer, rank_, size_) : Status::ok();
    if (!why.is_ok()) return why;
    const bool is_gone = answer.status().code() == StatusCode::kPeerLost;
    if (!is_gone && peers_.has_way_from(witness)) return cause;
    PCCL_TRY(last_words_of(witness));
    return cause;
}

Status Group::last_words_of(Rank witness) {
    const Deadline soon = Deadline::after(kLastWords).unless(aborted_);
    for (transport::Backoff backoff(*waiter_); !soon.passed(); backoff.pause()) {
        // A rank tells the others before it forgets the group.
        if (heard_.is_set()) return heard_.get();
        // Words may lie behind data that nobody reads any more: they show a moment later.
        const bool has_ended = peers_.has_way_from(witness) && !peers_.look(witness).is_ok();
        PCCL_TRY(peers_.look_for_failure());
        if (has_ended) return Status::ok();
    }
    return Status::ok();
}

void Group::hear(Rank from, const Status& reason) {
    Rank nobody = kNoRank;
    heard_from_.compare_exchange_strong(nobody, from);
    static_cast<void>(
        heard_.set(transport::why_gone(reason, {.self = rank_, .leaver = from, .ranks = size_})));
}

void Group::fall_short(const Status& why) {
    static_cast<void>(heard_.set(why));
    peers_.fall_short(why);
}

void Group::tell_the_others() {
    std::vector<Rank> ranks;
    Status reason;
    std::string text;
    {
        const std::lock_guard lock(mutex_);
        ranks.swap(to_tell_);
        reason = cause_;
        const bool is_failure = cause_.code() != StatusCode::kAborted;
        if (is_failure && !std::exchange(is_recorded_, true)) text = broken_.to_string();
    }
    if (!text.empty()) runtime::dump_flight_record(text);
    const Deadline deadline = Deadline::after(kTelling);
    for (const Rank rank : ranks) {
        if (deadline.passed()) return;
        if (rank == reason.peer()) continue;
        static_cast<void>(peers_.tell(rank, reason, deadline.within(kTellingOne)));
    }
}

void Group::give_up_late() {
    if (inquiring_.exchange(true)) return;
    const ScopeExit done([this] { inquiring_.store(false); });
    Stall stall;
    {
        const std::lock_guard lock(mutex_);
        if (!is_late()) return;
        stall = this->stall();
    }
    const Deadline deadline = Deadline::after(kInquest).unless(aborted_);
    Elsewhere there;
    const Status verdict = find_culprit(stall, [&](Rank rank) {
        auto answer = ask(rank, deadline.within(kPatience));
        if (!answer.is_ok()) return answer;
        answer->elsewhere.lacks_asker = stays_out_of_order(stall, *answer);
        if (answer->elsewhere.lacks_asker) there = answer->elsewhere;
        return answer;
    });
    advance();  // what a rank did before it left still counts, and ends it
    {
        const std::lock_guard lock(mutex_);
        if (!is_late() || collectives_.front()->sequence() != stall.sequence) return;
    }
    if (there.lacks_asker) fail_crossed(stall, there);
    break_from_outside(verdict);
}

}  // namespace pccl::comm
