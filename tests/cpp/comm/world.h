// SPDX-License-Identifier: Apache-2.0

// A world of ranks that are threads, in which some may be killed and parted from others: what they
// hear of each other while they agree on smaller groups.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "csrc/bootstrap/roster.h"
#include "csrc/comm/diagnosis/rank_status.h"
#include "csrc/comm/diagnosis/shrinking.h"

namespace pccl::comm {

/// The group that all ranks of a world begin in.
inline constexpr bootstrap::GroupIdentity kOld{.group = {1}, .secret = {2}};

/// Those of `size` ranks that are not among `some`.
std::vector<Rank> others_of(std::span<const Rank> some, int size);

/// Its ranks are numbered as in the whole job, in whatever group they ask each other.
class World {
   public:
    /// Called before each question, with their number so far.
    std::function<void(World&, int requested)> event = [](World&, int) {};

    void kill(Rank rank);
    /// From now on these pairs, each in order, do not hear of each other; others do.
    void cut(std::span<const std::pair<Rank, Rank>> pairs);
    [[nodiscard]] bool is_dead(Rank rank);

    std::shared_ptr<ShrinkState> enter(const bootstrap::GroupIdentity& group, Rank rank);
    void leave(const bootstrap::GroupIdentity& group, Rank rank);
    Result<RankStatus> query(const bootstrap::GroupIdentity& group, Rank from, Rank to);
    /// What an operation shows: whether all members of a group use it.
    bool meet(const bootstrap::GroupIdentity& group, Rank rank, std::size_t size, Duration limit);

   private:
    std::recursive_mutex mutex_;  // events call back
    std::condition_variable_any changed_;
    int queries_ = 0;
    std::set<Rank> dead_;
    std::set<std::pair<Rank, Rank>> cuts_;
    std::map<std::pair<transport::GroupId, Rank>, std::shared_ptr<ShrinkState>> members_;
    std::map<transport::GroupId, std::set<Rank>> met_;
};

}  // namespace pccl::comm
