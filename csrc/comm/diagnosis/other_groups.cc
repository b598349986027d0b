// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/diagnosis/other_groups.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/comm/diagnosis/diagnosis_timing.h"

namespace pccl::comm {
namespace {

/// Keeps the group alive during a query.
using ProbePtr = std::shared_ptr<GroupProbe>;

std::vector<ProbePtr> probes(runtime::Runtime& runtime) {
    std::vector<ProbePtr> all;
    for (const auto& participant : runtime.participants())
        if (auto* const group = dynamic_cast<ProbedParticipant*>(participant.get()))
            all.emplace_back(participant, &group->group_probe());
    return all;
}

std::vector<ProbePtr> probes_of(runtime::Runtime& runtime, const transport::GroupId& group) {
    std::vector<ProbePtr> all = probes(runtime);
    std::erase_if(all, [&group](const ProbePtr& probe) { return probe->group() != group; });
    return all;
}

}  // namespace

Rank place_of(std::uint64_t global_rank, std::span<const std::uint64_t> global_ranks) {
    const auto found = std::ranges::find(global_ranks, global_rank);
    return found == global_ranks.end() ? kNoRank : static_cast<Rank>(found - global_ranks.begin());
}

Status look_for_lost(runtime::Runtime& runtime, std::span<const std::uint64_t> global_ranks,
                     Rank suspect) {
    if (static_cast<std::size_t>(suspect) >= global_ranks.size()) return Status::ok();
    for (const ProbePtr& probe : probes(runtime)) {
        const auto lost = probe->look_for_lost(global_ranks[static_cast<std::size_t>(suspect)]);
        const Rank rank = lost ? place_of(lost->global_rank, global_ranks) : kNoRank;
        if (rank == kNoRank) continue;
        return Status(lost->why.code(),
                      concat("rank ", rank, " is lost in another group: ", lost->why.message()),
                      rank)
            .with_process(lost->why.process());
    }
    return Status::ok();
}

Status timeout_cause(runtime::Runtime& runtime, std::span<const std::uint64_t> global_ranks,
                     const Status& late) {
    const Rank suspect = late.peer();
    if (suspect < 0 || static_cast<std::size_t>(suspect) >= global_ranks.size()) return late;
    const Deadline deadline = Deadline::after(DiagnosisTiming().graph_walk);
    for (const ProbePtr& probe : probes(runtime)) {
        const auto holdup =
            probe->look_for_holdup(global_ranks[static_cast<std::size_t>(suspect)], deadline);
        const Rank rank = holdup ? place_of(holdup->global_rank, global_ranks) : kNoRank;
        if (rank == kNoRank || rank == suspect) continue;
        return Status::timeout(concat(late.message(), "; it is held up in another group by rank ",
                                      rank, ": ", holdup->why.message()),
                               rank);
    }
    return late;
}

OtherGroupWait blocked_outside(runtime::Runtime& runtime, const transport::GroupId& here) {
    bool is_known = true;
    for (const ProbePtr& probe : probes(runtime)) {
        if (probe->group() == here) continue;
        OtherGroupWait there = probe->blocked_in();
        there.group = probe->group();
        if (!there.operation.empty()) return there;
        is_known = is_known && there.is_known;
    }
    return {.is_known = is_known};
}

bool is_awaited(runtime::Runtime& runtime, const OtherGroupWait& there) {
    return !there.operation.empty() &&
           std::ranges::any_of(probes_of(runtime, there.group), [&there](const auto& probe) {
               return probe->can_be_awaited(there.awaited);
           });
}

bool is_lacking(runtime::Runtime& runtime, const OtherGroupWait& there) {
    return !there.operation.empty() &&
           std::ranges::any_of(probes_of(runtime, there.group), [&there](const auto& probe) {
               return !probe->has_called(there.sequence);
           });
}

void end_group(runtime::Runtime& runtime, const transport::GroupId& group, const Status& why) {
    for (const ProbePtr& probe : probes_of(runtime, group)) probe->end(why);
}

}  // namespace pccl::comm
