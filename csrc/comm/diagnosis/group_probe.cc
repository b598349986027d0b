// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/diagnosis/group_probe.h"

#include <algorithm>
#include <mutex>

#include "csrc/comm/diagnosis/wait_for_graph.h"

namespace pccl::comm {

bool DiagnosedGroupProbe::can_be_awaited(std::span<const Rank> awaited) const {
    const Rank self = subject_.peers.directory().rank();
    return !subject_.group.is_over() && std::ranges::find(awaited, self) != awaited.end();
}

Rank DiagnosedGroupProbe::other_rank(std::uint64_t global_rank) const {
    const runtime::PeerDirectory& members = subject_.peers.directory();
    const Rank rank = place_of(global_rank, members.global_ranks());
    return rank == members.rank() ? kNoRank : rank;
}

Status DiagnosedGroupProbe::look_at_members(std::uint64_t suspect) const {
    const runtime::PeerDirectory& members = subject_.peers.directory();
    {
        const std::unique_lock lock(subject_.group.mutex(), std::try_to_lock);
        const bool is_running = lock.owns_lock() && subject_.group.ended().cause.is_ok();
        if (!is_running || !members.has_endpoints()) return Status::ok();
        PCCL_TRY(subject_.peers.look());
    }
    const Rank rank = other_rank(suspect);
    if (rank == kNoRank) return Status::ok();
    return why_lost(rank, survey_.query(rank, Deadline::after(subject_.timing.glance)),
                    members.rank(), members.size());
}

std::optional<LostMember> DiagnosedGroupProbe::look_for_lost(std::uint64_t suspect) {
    if (const Status gone = look_at_members(suspect); !gone.is_ok()) give_up(subject_.group, gone);
    const runtime::PeerDirectory& members = subject_.peers.directory();
    const std::lock_guard lock(subject_.group.mutex());
    const GroupEnd& end = subject_.group.ended();
    const Rank peer = end.cause.peer();
    const bool is_known =
        peer >= 0 && static_cast<std::size_t>(peer) < members.global_ranks().size();
    if (end.cause.code() != StatusCode::kPeerLost || !is_known) return std::nullopt;
    const Status way = members.route_to(peer).status();
    return LostMember{members.global_ranks()[static_cast<std::size_t>(peer)],
                      way.is_ok() ? end.cause.with_process(end.shown.process()) : way};
}

std::optional<LostMember> DiagnosedGroupProbe::look_for_holdup(std::uint64_t suspect,
                                                               Deadline deadline) {
    const runtime::PeerDirectory& members = subject_.peers.directory();
    const Rank rank = other_rank(suspect);
    if (rank == kNoRank || !is_made()) return std::nullopt;
    Status found = known_end(rank);
    if (found.is_ok()) found = whom_awaits(rank, deadline);
    // A rank that has left instead of answering has sent its close reason before.
    if (found.code() == StatusCode::kPeerLost) found = known_end(rank);
    const Rank last = found.peer();
    if (found.code() != StatusCode::kTimeout || last < 0 || last >= members.size())
        return std::nullopt;
    return LostMember{members.global_ranks()[static_cast<std::size_t>(last)], found};
}

Status DiagnosedGroupProbe::known_end(Rank rank) const {
    if (received_.why.is_set()) return received_.why.get();
    const std::unique_lock lock(subject_.group.mutex(), std::try_to_lock);
    if (!lock.owns_lock()) return Status::ok();
    const Status& cause = subject_.group.ended().cause;
    return cause.is_ok() ? subject_.peers.look(rank) : cause;
}

bool DiagnosedGroupProbe::is_made() const {
    // The thread that creates the group holds the lock for long.
    const std::unique_lock lock(subject_.group.mutex(), std::try_to_lock);
    return lock.owns_lock() && subject_.peers.directory().has_endpoints();
}

Status DiagnosedGroupProbe::whom_awaits(Rank rank, Deadline deadline) const {
    const runtime::PeerDirectory& members = subject_.peers.directory();
    const Stall stall{.self = members.rank(),
                      .ranks = members.size(),
                      .group = members.group_name(),
                      .awaited = {{.rank = rank, .act = Awaited::Act::kJoin}}};
    return find_culprit(stall, [&](Rank queried) {
        return subject_.peers.query(queried, deadline.within(subject_.timing.answer_timeout));
    });
}

}  // namespace pccl::comm
