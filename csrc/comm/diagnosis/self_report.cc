#include "csrc/comm/diagnosis/self_report.h"

#include <algorithm>
#include <utility>

#include "csrc/base/scope_exit.h"
#include "csrc/collective/fingerprint.h"
#include "csrc/comm/diagnosis/other_groups.h"
#include "csrc/comm/diagnosis/question_bell.h"
#include "csrc/runtime/flight/flight_recorder.h"

namespace pccl::comm {

Situation SelfReport::situation() const {
    const DiagnosedGroup& group = subject_.group;
    const bool has_heard = heard_.why.is_set();
    Situation situation{.broken = has_heard ? heard_.why.get() : Status::ok(),
                        .told_by = has_heard ? heard_.from.load() : kNoRank,
                        .sequence = group.sequence(),
                        .shrinking = shrinking_.told(),
                        .switching = switching_.told()};
    // Somebody may hold the lock while the group is made: the acceptor must not wait for that.
    const Rank reaching = subject_.peers.reaching();
    if (reaching != kNoRank) situation.awaited = {reaching};
    const auto lock = lock_soon(group);
    situation.is_whole = lock.owns_lock() || !situation.awaited.empty();
    if (!lock.owns_lock()) return situation;
    if (const Status& cause = group.ended().cause; !cause.is_ok()) {
        situation.broken = cause;
        situation.told_by = kNoRank;
    }
    if (const auto stall = group.stall()) situation.operation = describe(stall->header);
    for (const Rank rank : ranks_of(group.awaited()))
        if (rank != reaching) situation.awaited.push_back(rank);
    return situation;
}

Situation SelfReport::whole_situation() const {
    const runtime::PeerDirectory& self = subject_.peers.directory();
    Situation whole = situation();
    for (const runtime::FlightWait& wait :
         runtime::flight_recorder().waits(self.group_name(), self.rank())) {
        if (whole.gpu_operation.empty()) whole.gpu_operation = wait.operation;
        if (wait.operation == whole.gpu_operation) whole.gpu_awaited.push_back(wait.peer);
    }
    return whole;
}

std::string SelfReport::answer(Rank asker) {
    const ScopeExit answered([] { question_bell().ring(); });
    Situation answer = whole_situation();
    answer.recent =
        runtime::flight_recorder().recent(subject_.flight_group, Situation::kMostRecent);
    answer.elsewhere =
        blocked_outside(subject_.runtime, subject_.peers.directory().identity().group);
    answer.is_whole = answer.is_whole && answer.elsewhere.is_known;
    answer.has_one_thread = subject_.runtime.has_one_thread();
    if (asker >= 0 && asker < subject_.peers.directory().size())
        switching_.note_shown(asker, answer.switching.verdict);
    return answer.serialise();
}

runtime::VisibleGroup::Standing SelfReport::standing() const {
    Situation now = situation();
    return {.awaited = std::move(now.awaited),
            .broken = std::move(now.broken),
            .is_whole = now.is_whole};
}

std::vector<bootstrap::Endpoint> SelfReport::members(Rank first, std::size_t most) const {
    const runtime::PeerDirectory& members = subject_.peers.directory();
    std::vector<bootstrap::Endpoint> some;
    const auto lock = lock_soon(subject_.group);
    if (!lock.owns_lock() || !members.knows_peers()) return some;
    for (Rank rank = std::max(first, 0); rank < members.size() && some.size() < most; ++rank)
        some.push_back(members.endpoint(rank));
    return some;
}

Elsewhere SelfReport::blocked_in() const {
    const runtime::PeerDirectory& self = subject_.peers.directory();
    Elsewhere there{.name = self.group_name(), .rank = self.rank()};
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
