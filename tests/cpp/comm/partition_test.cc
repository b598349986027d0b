// SPDX-License-Identifier: Apache-2.0

// Groups whose links break, and break otherwise later: at most one side goes on.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "csrc/comm/membership/agreement.h"
#include "tests/cpp/comm/world.h"

namespace pccl::comm {
namespace {

/// A rank of a world that falls apart, as a program that shrinks until it can go on, or not.
class Program {
   public:
    Program(World& world, Rank self, int size) : world_(world), self_(self) {
        for (Rank rank = 0; rank < size; ++rank) group_.members.push_back(rank);
        group_.identity = kOld;
        state_ = world_.enter(kOld, self);
    }

    /// The group in which this rank goes on: all of its members are there. None: too few are left.
    std::optional<transport::GroupId> run() {
        for (int tries = 0; tries < 12; ++tries) {
            const std::vector<Rank> left_out = missing();
            if (left_out.empty() && meets()) return group_.identity.group;
            if (left_out.empty()) continue;
            const auto size = static_cast<int>(group_.members.size());
            const auto staying = others_of(left_out, size);
            if (!check_quorum(size, staying, {}).is_ok()) break;
            shrink_to(staying, left_out);
        }
        return std::nullopt;
    }

   private:
    struct Place {
        bootstrap::GroupIdentity identity{};
        std::vector<Rank> members{};  // as numbered in the world
    };
    Rank in_world(Rank rank) const { return group_.members[static_cast<std::size_t>(rank)]; }
    Rank own_place() const {
        return static_cast<Rank>(std::ranges::find(group_.members, self_) - group_.members.begin());
    }
    Result<RankStatus> query(Rank rank) {
        return world_.query(group_.identity, self_, in_world(rank));
    }

    bool meets() {
        return world_.meet(group_.identity, self_, group_.members.size(),
                           std::chrono::milliseconds(60));
    }
    std::vector<Rank> missing() {
        const std::vector<Rank> renounced = state_->renounced();
        std::set<Rank> out(renounced.begin(), renounced.end());
        for (Rank rank = 0; std::cmp_less(rank, group_.members.size()); ++rank) {
            if (in_world(rank) == self_) continue;
            const auto answer = query(rank);
            const bool is_here =
                answer.is_ok() && answer->shrinking.stage != Shrinking::ShrinkStage::kDecided;
            if (!is_here) out.insert(rank);
            if (is_here)
                out.insert(answer->shrinking.left_out.begin(), answer->shrinking.left_out.end());
        }
        out.erase(own_place());
        return {out.begin(), out.end()};
    }

    void shrink_to(const std::vector<Rank>& staying, const std::vector<Rank>& left_out) {
        if (!state_->begin(left_out).is_ok()) return;
        Agreement agreement({.self = own_place(),
                             .old = group_.identity,
                             .staying = staying,
                             .left_out = left_out,
                             .query = [&](Rank peer) { return query(peer); },
                             .publish = [&](const Shrinking& now) { state_->publish(now); },
                             .deadline = Deadline::after(std::chrono::milliseconds(60)),
                             .answer_timeout = std::chrono::milliseconds(30),
                             .doubt = std::chrono::milliseconds(10)});
        Place next;
        for (const Rank rank : staying) next.members.push_back(in_world(rank));
        std::shared_ptr<ShrinkState> entered;
        for (bool all_have_confirmed = false; !all_have_confirmed;) {
            const auto identity = agreement.propose();
            if (!identity.is_ok()) return;
            next.identity = *identity;
            entered = world_.enter(next.identity, self_);
            state_->renounce(left_out);
            const auto confirmed = agreement.confirm();
            if (!confirmed.is_ok() || !*confirmed) world_.leave(next.identity, self_);
            if (!confirmed.is_ok()) return;
            all_have_confirmed = *confirmed;
        }
        group_ = next;
        state_ = entered;
    }

    World& world_;
    const Rank self_;
    Place group_;
    std::shared_ptr<ShrinkState> state_;
};

using Cuts = std::vector<std::pair<Rank, Rank>>;

/// Two sides, or some links at random.
Cuts random_cuts(std::mt19937& random, int size) {
    Cuts cuts;
    const bool is_in_two = random() % 2 == 0;
    const auto side = static_cast<unsigned>(random());
    for (Rank a = 0; a < size; ++a)
        for (Rank b = a + 1; b < size; ++b) {
            const bool is_across = ((side >> a ^ side >> b) & 1U) != 0;
            if (is_in_two ? is_across : random() % 3 == 0) cuts.emplace_back(a, b);
        }
    return cuts;
}

/// How many groups of a world whose links break at random, and break otherwise later, go on: those
/// that all of their members are in.
int groups_that_go_on(unsigned seed) {
    std::mt19937 random(seed);
    const int size = std::uniform_int_distribution(3, 5)(random);
    const int moment = std::uniform_int_distribution(0, 80)(random);
    const int later = moment + std::uniform_int_distribution(1, 200)(random);
    const Cuts cuts = random_cuts(random, size);
    const Cuts others = random_cuts(random, size);
    World world;
    world.kill(size);  // the rank that the others want to leave out
    world.event = [&](World& now, int requested) {
        if (requested == moment) now.cut(cuts);
        if (requested == later) now.cut(others);
    };
    std::mutex mutex;
    std::map<transport::GroupId, int> members;
    std::vector<Program> programs;
    programs.reserve(static_cast<std::size_t>(size));
    for (Rank rank = 0; rank < size; ++rank) programs.emplace_back(world, rank, size + 1);
    std::vector<std::thread> threads;
    for (Program& program : programs)
        threads.emplace_back([&] {
            const auto group = program.run();
            const std::lock_guard lock(mutex);
            if (group) ++members[*group];
        });
    for (auto& thread : threads) thread.join();
    return static_cast<int>(members.size());
}

TEST(PartitionTest, AtMostOneSideOfAGroupThatFallsApartGoesOn) {
    constexpr unsigned kWorlds = 96;
    constexpr unsigned kAtOnce = 8;
    std::atomic<int> all{0};
    std::vector<std::thread> threads;
    for (unsigned first = 0; first < kAtOnce; ++first)
        threads.emplace_back([&, first] {
            for (unsigned seed = first; seed < kWorlds; seed += kAtOnce) {
                const int groups = groups_that_go_on(seed);
                EXPECT_LE(groups, 1) << "seed " << seed;
                all += groups;
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_GT(all, 0) << "no world had a side that could go on";
}

}  // namespace
}  // namespace pccl::comm
