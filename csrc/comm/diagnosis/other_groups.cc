#include "csrc/comm/diagnosis/other_groups.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "csrc/base/text.h"
#include "csrc/comm/diagnosis/diagnosis_timing.h"

namespace pccl::comm {
namespace {

/// Holds the group while it is asked.
using WitnessPtr = std::shared_ptr<Witness>;

std::vector<WitnessPtr> witnesses(runtime::Runtime& runtime) {
    std::vector<WitnessPtr> all;
    for (const auto& participant : runtime.participants())
        if (auto* const group = dynamic_cast<WitnessingParticipant*>(participant.get()))
            all.emplace_back(participant, &group->witness());
    return all;
}

std::vector<WitnessPtr> witnesses_of(runtime::Runtime& runtime, const transport::GroupId& group) {
    std::vector<WitnessPtr> all = witnesses(runtime);
    std::erase_if(all, [&group](const WitnessPtr& witness) { return witness->group() != group; });
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
    for (const WitnessPtr& witness : witnesses(runtime)) {
        const auto lost = witness->look_for_lost(global_ranks[static_cast<std::size_t>(suspect)]);
        const Rank rank = lost ? place_of(lost->global_rank, global_ranks) : kNoRank;
        if (rank == kNoRank) continue;
        return Status(lost->why.code(),
                      concat("rank ", rank, " is lost in another group: ", lost->why.message()),
                      rank)
            .with_process(lost->why.process());
    }
    return Status::ok();
}

Status why_late(runtime::Runtime& runtime, std::span<const std::uint64_t> global_ranks,
                const Status& late) {
    const Rank suspect = late.peer();
    if (suspect < 0 || static_cast<std::size_t>(suspect) >= global_ranks.size()) return late;
    const Deadline deadline = Deadline::after(DiagnosisTiming().inquest);
    for (const WitnessPtr& witness : witnesses(runtime)) {
        const auto holdup =
            witness->look_for_holdup(global_ranks[static_cast<std::size_t>(suspect)], deadline);
        const Rank rank = holdup ? place_of(holdup->global_rank, global_ranks) : kNoRank;
        if (rank == kNoRank || rank == suspect) continue;
        return Status::timeout(concat(late.message(), "; it is held up in another group by rank ",
                                      rank, ": ", holdup->why.message()),
                               rank);
    }
    return late;
}

Elsewhere blocked_outside(runtime::Runtime& runtime, const transport::GroupId& here) {
    bool is_known = true;
    for (const WitnessPtr& witness : witnesses(runtime)) {
        if (witness->group() == here) continue;
        Elsewhere there = witness->blocked_in();
        there.group = witness->group();
        if (!there.operation.empty()) return there;
        is_known = is_known && there.is_known;
    }
    return {.is_known = is_known};
}

bool is_awaited(runtime::Runtime& runtime, const Elsewhere& there) {
    return !there.operation.empty() &&
           std::ranges::any_of(witnesses_of(runtime, there.group), [&there](const auto& witness) {
               return witness->can_be_awaited(there.awaited);
           });
}

bool is_lacking(runtime::Runtime& runtime, const Elsewhere& there) {
    return !there.operation.empty() &&
           std::ranges::any_of(witnesses_of(runtime, there.group), [&there](const auto& witness) {
               return !witness->has_called(there.sequence);
           });
}

void fail_group(runtime::Runtime& runtime, const transport::GroupId& group, const Status& why) {
    for (const WitnessPtr& witness : witnesses_of(runtime, group)) witness->fail(why);
}

}  // namespace pccl::comm
