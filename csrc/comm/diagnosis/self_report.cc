// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/diagnosis/self_report.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "csrc/base/scope_exit.h"
#include "csrc/collective/fingerprint.h"
#include "csrc/comm/diagnosis/other_groups.h"
#include "csrc/runtime/flight/flight_recorder.h"

namespace pccl::comm {

void QueryBell::ring() {
    {
        const std::lock_guard lock(mutex_);
        ++rings_;
    }
    rung_.notify_all();
}

std::uint64_t QueryBell::rings() const {
    const std::lock_guard lock(mutex_);
    return rings_;
}

void QueryBell::rest(std::uint64_t rings, Duration longest) {
    std::unique_lock lock(mutex_);
    rung_.wait_for(lock, longest, [&] { return rings_ > rings; });
}

QueryBell& query_bell() {
    // Never destroyed: threads answer other ranks, and ring it, during process exit.
    static auto* const bell = new QueryBell;
    return *bell;
}

RankStatus SelfReport::rank_status() const {
    const DiagnosedGroup& group = subject_.group;
    const bool has_received_reason = received_.why.is_set();
    RankStatus rank_status{.broken = has_received_reason ? received_.why.get() : Status::ok(),
                           .reported_by = has_received_reason ? received_.from.load() : kNoRank,
                           .sequence = group.sequence(),
                           .shrinking = shrinking_.published(),
                           .switching = switching_.published()};
    // Another thread may hold the lock while the group is created: the acceptor must not wait for
    // that.
    const Rank reaching = subject_.peers.reaching();
    if (reaching != kNoRank) rank_status.awaited = {reaching};
    const auto lock = lock_soon(group);
    rank_status.is_whole = lock.owns_lock() || !rank_status.awaited.empty();
    if (!lock.owns_lock()) return rank_status;
    if (const Status& cause = group.ended().cause; !cause.is_ok()) {
        rank_status.broken = cause;
        rank_status.reported_by = kNoRank;
    }
    if (const auto stall = group.stall()) rank_status.operation = describe(stall->header);
    for (const Rank rank : ranks_of(group.awaited()))
        if (rank != reaching) rank_status.awaited.push_back(rank);
    return rank_status;
}

RankStatus SelfReport::whole_rank_status() const {
    const runtime::PeerDirectory& self = subject_.peers.directory();
    RankStatus whole = rank_status();
    for (const runtime::FlightWait& wait :
         runtime::flight_recorder().waits(self.group_name(), self.rank())) {
        if (whole.gpu_operation.empty()) whole.gpu_operation = wait.operation;
        if (wait.operation == whole.gpu_operation) whole.gpu_awaited.push_back(wait.peer);
    }
    return whole;
}

std::string SelfReport::answer(Rank asker) {
    const ScopeExit answered([] { query_bell().ring(); });
    RankStatus answer = whole_rank_status();
    answer.recent =
        runtime::flight_recorder().recent(subject_.flight_group, RankStatus::kMostRecent);
    answer.other_group_wait =
        blocked_outside(subject_.runtime, subject_.peers.directory().identity().group);
    answer.is_whole = answer.is_whole && answer.other_group_wait.is_known;
    answer.has_one_thread = subject_.runtime.has_one_thread();
    if (asker >= 0 && asker < subject_.peers.directory().size())
        switching_.note_shown(asker, answer.switching.switch_result);
    return answer.serialise();
}

runtime::VisibleGroup::Standing SelfReport::standing() const {
    RankStatus now = rank_status();
    return {.awaited = std::move(now.awaited),
            .broken = std::move(now.broken),
            .is_whole = now.is_whole};
}

runtime::UsageSnapshot SelfReport::usage(std::size_t most) const {
    runtime::UsageSnapshot now = subject_.group.usage().snapshot(most);
    const auto lock = lock_soon(subject_.group);
    if (lock.owns_lock()) now.paths = subject_.peers.paths();
    runtime::limit(now, most);
    return now;
}

std::vector<runtime::UsageWindow> SelfReport::history(std::chrono::seconds from) const {
    const auto lock = lock_soon(subject_.group);
    if (!lock.owns_lock()) return {};
    return subject_.group.usage().history(from);
}

std::vector<bootstrap::Endpoint> SelfReport::members(Rank first, std::size_t most) const {
    const runtime::PeerDirectory& members = subject_.peers.directory();
    std::vector<bootstrap::Endpoint> some;
    const auto lock = lock_soon(subject_.group);
    if (!lock.owns_lock() || !members.has_endpoints()) return some;
    for (Rank rank = std::max(first, 0); rank < members.size() && some.size() < most; ++rank)
        some.push_back(members.endpoint(rank));
    return some;
}

OtherGroupWait SelfReport::blocked_in() const {
    const runtime::PeerDirectory& self = subject_.peers.directory();
    OtherGroupWait there{.name = self.group_name(), .rank = self.rank()};
    if (!has_waiter()) return there;
    const auto lock = lock_soon(subject_.group);
    there.is_known = lock.owns_lock();
    const auto stall = there.is_known ? subject_.group.stall() : std::nullopt;
    if (!stall) return there;
    there.operation = describe(stall->header);
    there.sequence = stall->sequence;
    there.awaited = ranks_of(stall->awaited);
    return there;
}

}  // namespace pccl::comm
