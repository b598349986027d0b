// What a group does while nothing moves: it asks other ranks, and answers them.
#include <algorithm>
#include <chrono>
#include <utility>

#include "csrc/base/scope_exit.h"
#include "csrc/comm/flight_dump.h"
#include "csrc/comm/group.h"

namespace pccl::comm {
namespace {

constexpr Duration kPatience = std::chrono::milliseconds(600);      // with one rank
constexpr Duration kInquest = std::chrono::milliseconds(1500);      // with all of them
constexpr Duration kBetweenLooks = std::chrono::milliseconds(500);  // and more in large groups
constexpr Duration kBetweenLooksPerRank = std::chrono::milliseconds(10);
constexpr Duration kTelling = std::chrono::milliseconds(500);
constexpr Duration kTellingOne = std::chrono::milliseconds(100);
constexpr std::size_t kMostAsked = 4;
constexpr int kTries = 20;
constexpr Duration kBetweenTries = std::chrono::milliseconds(1);

Deadline sooner(Deadline deadline, Duration patience) {
    return deadline.remaining() < patience ? deadline : Deadline::after(patience);
}

}  // namespace

Result<Situation> Group::ask(Rank rank, Deadline deadline) const {
    if (rank == rank_) return situation();
    return connections_.ask(rank, deadline);
}

Situation Group::situation() const {
    Situation situation{.sequence = sequence_.load()};
    // Somebody may hold the lock while it connects: the acceptor must not wait for that.
    std::unique_lock lock(mutex_, std::try_to_lock);
    for (int i = 0; i < kTries && !lock.owns_lock(); ++i) {
        system_clock().sleep_for(kBetweenTries);
        static_cast<void>(lock.try_lock());
    }
    if (!lock.owns_lock()) return situation;
    situation.broken = cause_;
    if (!collectives_.empty()) situation.operation = collectives_.front()->describe();
    for (const Awaited& awaited : awaited())
        if (awaited.rank != kNoRank) situation.awaited.push_back(awaited.rank);
    return situation;
}

Status Group::look_at(std::span<const Endpoint> joined) const {
    for (const Endpoint& endpoint : joined) {
        if (endpoint.rank == rank_) continue;
        const auto answer = connections_.ask(endpoint, Deadline::after(kPatience));
        PCCL_TRY(why_lost(endpoint.rank, answer, rank_, size_));
    }
    return Status::ok();
}

Status Group::look_at_members(std::uint64_t suspect) {
    {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock.owns_lock() || !broken_.is_ok() || !connections_.knows_peers())
            return Status::ok();
        PCCL_TRY(connections_.look());
    }
    const auto found = std::ranges::find(global_ranks_, suspect);
    const auto rank = static_cast<Rank>(found - global_ranks_.begin());
    if (found == global_ranks_.end() || rank == rank_) return Status::ok();
    return why_lost(rank, ask(rank, Deadline::after(kPatience)), rank_, size_);
}

auto Group::look_for_lost(std::uint64_t suspect) -> std::optional<LostMember> {
    if (const Status gone = look_at_members(suspect); !gone.is_ok()) break_from_outside(gone);
    const std::lock_guard lock(mutex_);
    const Rank peer = cause_.peer();
    const bool is_known = peer >= 0 && static_cast<std::size_t>(peer) < global_ranks_.size();
    if (cause_.code() != StatusCode::kPeerLost || !is_known) return std::nullopt;
    return LostMember{global_ranks_[static_cast<std::size_t>(peer)],
                      cause_.with_process(broken_.process())};
}

void Group::look_around() {
    const TimePoint now = system_clock().now();
    if (now - looked_around_.load() < kBetweenLooks + size_ * kBetweenLooksPerRank) return;
    if (inquiring_.exchange(true)) return;
    const ScopeExit done([this] { inquiring_.store(false); });
    looked_around_.store(now);
    std::vector<Rank> ranks = situation().awaited;
    if (ranks.size() > kMostAsked) ranks.resize(kMostAsked);
    for (const Rank rank : ranks) {
        const Status lost =
            why_lost(rank, ask(rank, Deadline::after(kPatience).unless(aborted_)), rank_, size_);
        if (!lost.is_ok()) return break_from_outside(lost);
    }
}

void Group::hear(Rank from, const Status& reason) {
    static_cast<void>(
        heard_.set(transport::why_gone(reason, {.self = rank_, .leaver = from, .ranks = size_})));
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
    if (!text.empty()) dump_flight_record(text);
    const Deadline deadline = Deadline::after(kTelling);
    for (const Rank rank : ranks) {
        if (deadline.passed()) return;
        if (rank == reason.peer()) continue;
        static_cast<void>(connections_.tell(rank, reason, sooner(deadline, kTellingOne)));
    }
}

void Group::give_up_late() {
    if (inquiring_.exchange(true)) return;
    const ScopeExit done([this] { inquiring_.store(false); });
    Stall stall{.self = rank_, .ranks = size_};
    {
        const std::lock_guard lock(mutex_);
        if (!is_late()) return;
        stall.sequence = collectives_.front()->sequence();
        stall.awaited = collectives_.front()->awaited();
    }
    const Deadline deadline = Deadline::after(kInquest).unless(aborted_);
    const Status verdict =
        find_culprit(stall, [&](Rank rank) { return ask(rank, sooner(deadline, kPatience)); });
    {
        const std::lock_guard lock(mutex_);
        if (!is_late() || collectives_.front()->sequence() != stall.sequence) return;
    }
    break_from_outside(verdict);
}

}  // namespace pccl::comm
