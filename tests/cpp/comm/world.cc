// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/comm/world.h"

#include <algorithm>

#include "csrc/base/text/text.h"

namespace pccl::comm {

std::vector<Rank> others_of(std::span<const Rank> some, int size) {
    std::vector<Rank> others;
    for (Rank rank = 0; rank < size; ++rank)
        if (std::ranges::find(some, rank) == some.end()) others.push_back(rank);
    return others;
}

void World::kill(Rank rank) {
    const std::lock_guard lock(mutex_);
    dead_.insert(rank);
}

void World::cut(std::span<const std::pair<Rank, Rank>> pairs) {
    const std::lock_guard lock(mutex_);
    cuts_ = {pairs.begin(), pairs.end()};
}

bool World::is_dead(Rank rank) {
    const std::lock_guard lock(mutex_);
    return dead_.contains(rank);
}

std::shared_ptr<ShrinkState> World::enter(const bootstrap::GroupIdentity& group, Rank rank) {
    const std::lock_guard lock(mutex_);
    return members_[{group.group, rank}] = std::make_shared<ShrinkState>();
}

void World::leave(const bootstrap::GroupIdentity& group, Rank rank) {
    const std::lock_guard lock(mutex_);
    members_.erase({group.group, rank});
}

Result<RankStatus> World::query(const bootstrap::GroupIdentity& group, Rank from, Rank to) {
    const std::lock_guard lock(mutex_);
    event(*this, queries_++);
    if (dead_.contains(from)) return Status::aborted("this rank is dead");
    if (cuts_.contains({std::min(from, to), std::max(from, to)}))
        return Status::timeout(concat("rank ", to, " is silent"), to);
    const auto found = members_.find({group.group, to});
    if (dead_.contains(to) || found == members_.end())
        return Status::peer_lost(to, concat("rank ", to, " has ended"));
    return RankStatus{.shrinking = found->second->published()};
}

bool World::meet(const bootstrap::GroupIdentity& group, Rank rank, std::size_t size,
                 Duration limit) {
    std::unique_lock lock(mutex_);
    std::set<Rank>& met = met_[group.group];
    met.insert(rank);
    changed_.notify_all();
    const bool all = changed_.wait_for(lock, limit, [&] { return met.size() == size; });
    if (!all) met.erase(rank);
    return all;
}

}  // namespace pccl::comm
