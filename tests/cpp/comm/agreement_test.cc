// How ranks agree on a smaller group, whoever dies and whatever link breaks meanwhile: ranks are
// threads that ask each other through a world that can kill and part them.
#include "csrc/comm/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "csrc/base/text.h"

namespace pccl::comm {
namespace {

using testing::HasSubstr;

constexpr GroupIdentity kOld{.group = {1}, .secret = {2}};

std::vector<Rank> others_of(std::span<const Rank> some, int size) {
    std::vector<Rank> others;
    for (Rank rank = 0; rank < size; ++rank)
        if (std::ranges::find(some, rank) == some.end()) others.push_back(rank);
    return others;
}

class QuorumTest : public testing::Test {
   protected:
    static bool may_go_on(int size, const std::vector<Rank>& staying,
                          std::optional<int> least = {}) {
        return check_quorum(size, staying, least).is_ok();
    }
};

TEST_F(QuorumTest, MoreThanHalfGoOnAndHalfWithRank0) {
    EXPECT_TRUE(may_go_on(3, {1, 2}));
    EXPECT_FALSE(may_go_on(3, {0}));
    EXPECT_TRUE(may_go_on(4, {0, 3}));
    EXPECT_FALSE(may_go_on(4, {1, 2}));
    EXPECT_TRUE(may_go_on(2, {0}));
    EXPECT_FALSE(may_go_on(2, {1}));
    EXPECT_TRUE(may_go_on(1, {0}));
}

TEST_F(QuorumTest, OfTwoSidesOneGoesOn) {
    for (const int size : {2, 3, 4, 5, 6})
        for (unsigned side = 0; side < 1U << size; ++side) {
            std::vector<Rank> ranks;
            for (Rank rank = 0; rank < size; ++rank)
                if ((side >> rank & 1U) != 0) ranks.push_back(rank);
            EXPECT_NE(may_go_on(size, ranks), may_go_on(size, others_of(ranks, size)));
        }
}

TEST_F(QuorumTest, WhoAsksDecidesHowFewMayGoOn) {
    EXPECT_TRUE(may_go_on(4, {3}, 1));
    EXPECT_FALSE(may_go_on(4, {0, 1, 2}, 4));
    for (const int wrong : {-1, 0, 5})
        EXPECT_EQ(check_quorum(4, std::vector<Rank>{0, 1, 2}, wrong).code(),
                  StatusCode::kInvalidArgument);
}

TEST_F(QuorumTest, TheErrorSaysWhoIsMissingAndWhatToDo) {
    const Status few = check_quorum(4, std::vector<Rank>{2}, {});
    EXPECT_EQ(few.code(), StatusCode::kUnavailable);
    EXPECT_EQ(few.message(),
              "1 of 4 ranks would be left, fewer than half of them: the others may go on; ranks 0, "
              "1, 3 are missing; least=1 goes on all the same");
    EXPECT_THAT(check_quorum(2, std::vector<Rank>{1}, {}).message(), HasSubstr("without rank 0"));
    EXPECT_THAT(check_quorum(2, std::vector<Rank>{1}, 2).message(),
                HasSubstr("at least 2 were asked for; rank 0 is missing"));
}

/// What ranks, numbered as in the whole job, hear of each other in groups that some are in.
class World {
   public:
    /// Called before each question, with their number so far.
    std::function<void(World&, int asked)> event = [](World&, int) {};

    void kill(Rank rank) {
        const std::lock_guard lock(mutex_);
        dead_.insert(rank);
    }
    /// From now on these pairs, each in order, do not hear of each other; others do.
    void cut(std::span<const std::pair<Rank, Rank>> pairs) {
        const std::lock_guard lock(mutex_);
        cuts_ = {pairs.begin(), pairs.end()};
    }

    std::shared_ptr<ShrinkState> enter(const GroupIdentity& group, Rank rank) {
        const std::lock_guard lock(mutex_);
        return members_[{group.group, rank}] = std::make_shared<ShrinkState>();
    }
    void leave(const GroupIdentity& group, Rank rank) {
        const std::lock_guard lock(mutex_);
        members_.erase({group.group, rank});
    }
    bool is_dead(Rank rank) {
        const std::lock_guard lock(mutex_);
        return dead_.contains(rank);
    }
    Result<Situation> ask(const GroupIdentity& group, Rank from, Rank to) {
        const std::lock_guard lock(mutex_);
        event(*this, asked_++);
        if (dead_.contains(from)) return Status::aborted("this rank is dead");
        if (cuts_.contains({std::min(from, to), std::max(from, to)}))
            return Status::timeout(concat("rank ", to, " is silent"), to);
        const auto found = members_.find({group.group, to});
        if (dead_.contains(to) || found == members_.end())
            return Status::peer_lost(to, concat("rank ", to, " has ended"));
        return Situation{.shrinking = found->second->told()};
    }

    /// What an operation shows: whether all members of a group use it.
    bool meet(const GroupIdentity& group, Rank rank, std::size_t size, Duration limit) {
        std::unique_lock lock(mutex_);
        std::set<Rank>& met = met_[group.group];
        met.insert(rank);
        changed_.notify_all();
        const bool all = changed_.wait_for(lock, limit, [&] { return met.size() == size; });
        if (!all) met.erase(rank);
        return all;
    }

   private:
    std::recursive_mutex mutex_;  // events call back
    std::condition_variable_any changed_;
    int asked_ = 0;
    std::set<Rank> dead_;
    std::set<std::pair<Rank, Rank>> cuts_;
    std::map<std::pair<transport::GroupId, Rank>, std::shared_ptr<ShrinkState>> members_;
    std::map<transport::GroupId, std::set<Rank>> met_;
};

struct Call {
    Rank rank = 0;  // in the old group, as the world knows it
    int size = 0;
    std::vector<Rank> staying{};
    bool awaits_ready = false;
    Duration limit = std::chrono::seconds(20);
    Duration patience = std::chrono::seconds(10);
    Duration doubt = std::chrono::seconds(2);
};

/// One rank's part in a shrink of kOld; its place there is `state`.
Result<GroupIdentity> shrink(World& world, ShrinkState& state, const Call& call) {
    const auto is_dead = [&] {
        return world.is_dead(call.rank) ? Status::aborted("this rank is dead") : Status::ok();
    };
    const std::vector<Rank> left_out = others_of(call.staying, call.size);
    PCCL_TRY(state.begin(left_out));
    Agreement agreement({.self = call.rank,
                         .old = kOld,
                         .staying = call.staying,
                         .left_out = left_out,
                         .ask = [&](Rank peer) { return world.ask(kOld, call.rank, peer); },
                         .tell = [&](const Shrinking& now) { state.tell(now); },
                         .interrupted = is_dead,
                         .deadline = Deadline::after(call.limit),
                         .patience = call.patience,
                         .doubt = call.doubt});
    GroupIdentity identity;
    for (bool all_have_confirmed = false; !all_have_confirmed;) {
        PCCL_ASSIGN_OR_RETURN(identity, agreement.propose());
        PCCL_ASSIGN_OR_RETURN(const bool all_are_ready,
                              call.awaits_ready ? agreement.await_ready() : true);
        if (!all_are_ready) continue;
        state.renounce(left_out);
        PCCL_ASSIGN_OR_RETURN(all_have_confirmed, agreement.confirm());
    }
    PCCL_TRY(is_dead());
    return identity;
}

using Outcome = Result<GroupIdentity>;

/// Four ranks in a world of their own.
struct Ranks {
    static constexpr int kSize = 4;
    bool await_ready = false;

    Ranks() {
        for (Rank rank = 0; rank < kSize; ++rank) states.push_back(world.enter(kOld, rank));
    }
    ShrinkState& state(Rank rank) { return *states[static_cast<std::size_t>(rank)]; }
    Outcome shrink(Rank rank, const std::vector<Rank>& staying,
                   Duration limit = std::chrono::seconds(20)) {
        return comm::shrink(world, state(rank),
                            {.rank = rank,
                             .size = kSize,
                             .staying = staying,
                             .awaits_ready = await_ready,
                             .limit = limit});
    }
    /// By rank, what came of it; of all at the same time.
    std::map<Rank, Outcome> shrink_all(const std::vector<Rank>& staying) {
        std::map<Rank, Outcome> outcomes;
        std::mutex mutex;
        std::vector<std::thread> threads;
        for (const Rank rank : staying)
            threads.emplace_back([&, rank] {
                Outcome outcome = shrink(rank, staying);
                const std::lock_guard lock(mutex);
                outcomes.emplace(rank, std::move(outcome));
            });
        for (auto& thread : threads) thread.join();
        return outcomes;
    }

    World world;
    std::vector<std::shared_ptr<ShrinkState>> states;
};

TEST(AgreementTest, AllWhoStayDeriveTheSameGroup) {
    Ranks ranks;
    const auto outcomes = ranks.shrink_all({0, 1, 3});
    for (const auto& [rank, outcome] : outcomes) {
        ASSERT_TRUE(outcome.is_ok()) << outcome.status().to_string();
        EXPECT_EQ(outcome->group, outcomes.at(0)->group);
        EXPECT_EQ(outcome->secret, outcomes.at(0)->secret);
        EXPECT_NE(outcome->secret, kOld.secret);
    }
}

TEST(AgreementTest, OneThatDiesAtAnyMomentEndsItForAllOrForNone) {
    int gone_on = 0;
    for (int moment = 0; moment < 40; ++moment) {
        SCOPED_TRACE(concat("after question ", moment));
        Ranks ranks;
        ranks.await_ready = moment % 2 == 0;
        ranks.world.event = [moment](World& world, int asked) {
            if (asked == moment) world.kill(2);
        };
        const auto outcomes = ranks.shrink_all({0, 1, 2});
        const Outcome& one = outcomes.at(0);
        const Outcome& other = outcomes.at(1);
        EXPECT_EQ(one.is_ok(), other.is_ok())
            << one.status().to_string() << " but " << other.status().to_string();
        for (const Outcome& outcome : {one, other})
            EXPECT_EQ(outcome.status().peer(), outcome.is_ok() ? kNoRank : 2);
        gone_on += one.is_ok() ? 1 : 0;
        // Whoever goes on afterwards does so with the other, from the same group.
        if (one.is_ok() || other.is_ok()) continue;
        for (const auto& [rank, outcome] : ranks.shrink_all({0, 1}))
            EXPECT_TRUE(outcome.is_ok()) << outcome.status().to_string();
    }
    EXPECT_LT(gone_on, 40) << "the early deaths must have been noticed";
}

TEST(AgreementTest, ADeathIsNoticedWhileALateRankIsAwaited) {
    Ranks ranks;
    ranks.world.event = [](World& world, int asked) {
        if (asked == 10) world.kill(1);
    };
    std::thread doomed([&] { EXPECT_FALSE(ranks.shrink(1, {0, 1, 2}).is_ok()); });
    const Outcome outcome = ranks.shrink(0, {0, 1, 2});  // rank 2 never comes
    doomed.join();
    EXPECT_EQ(outcome.status().code(), StatusCode::kPeerLost);
    EXPECT_EQ(outcome.status().peer(), 1);
}

TEST(AgreementTest, WhoGaveUpMayCallAgain) {
    Ranks ranks;
    EXPECT_EQ(ranks.shrink(1, {0, 1, 3}, std::chrono::milliseconds(20)).status().code(),
              StatusCode::kTimeout);
    std::thread early([&] {
        const Outcome outcome = ranks.shrink(0, {0, 1, 3});
        EXPECT_TRUE(outcome.is_ok()) << outcome.status().to_string();
    });
    // Rank 0 may have heard of this call when the next one comes.
    EXPECT_FALSE(ranks.shrink(1, {0, 1, 3}, std::chrono::milliseconds(50)).is_ok());
    std::thread last([&] { EXPECT_TRUE(ranks.shrink(3, {0, 1, 3}).is_ok()); });
    EXPECT_TRUE(ranks.shrink(1, {0, 1, 3}).is_ok());
    early.join();
    last.join();
}

TEST(AgreementTest, OtherListsAreToldApartAtOnce) {
    Ranks ranks;
    std::map<Rank, Status> found;
    std::thread other([&] { found[1] = ranks.shrink(1, {0, 1, 3}).status(); });
    found[0] = ranks.shrink(0, {0, 1, 2}).status();
    ranks.world.kill(0);
    other.join();
    EXPECT_EQ(found[0].code(), StatusCode::kMismatch);
    EXPECT_EQ(found[0].message(), "rank 1 leaves out rank 2; this rank leaves out rank 3");
}

TEST(AgreementTest, WhoLeavesOutMoreWaitsForTheOtherToSeeIt) {
    Ranks ranks;
    std::thread patient([&] { EXPECT_TRUE(ranks.shrink(1, {0, 1}).is_ok()); });
    Outcome outcome = ranks.shrink(0, {0, 1, 2});
    EXPECT_EQ(outcome.status().message(),
              "rank 1 leaves out ranks 2, 3; this rank leaves out rank 3");
    outcome = ranks.shrink(0, {0, 1});
    EXPECT_TRUE(outcome.is_ok()) << outcome.status().to_string();
    patient.join();
}

TEST(AgreementTest, WhoIsLeftOutHearsIt) {
    Ranks ranks;
    static_cast<void>(ranks.shrink_all({0, 1, 3}));
    const Outcome late = ranks.shrink(2, {0, 1, 2});
    EXPECT_EQ(late.status().code(), StatusCode::kUnavailable);
    EXPECT_EQ(late.status().message(),
              "rank 0 has gone on without this one, in a group of 3 that leaves out rank 2");
}

TEST(ShrinkStateTest, AGroupIsShrunkOnceAndOnlyFurther) {
    ShrinkState state;
    const std::vector<Rank> one{2};
    const std::vector<Rank> other{3};
    const std::vector<Rank> both{2, 3};
    EXPECT_TRUE(state.begin(one).is_ok());
    EXPECT_THAT(state.begin(one).message(), HasSubstr("another thread"));
    state.renounce(one);
    state.tell({});
    EXPECT_THAT(state.begin(other).message(), HasSubstr("leave out rank 2, too"));
    EXPECT_TRUE(state.begin(both).is_ok());
    state.tell({.stage = Shrinking::Stage::kDecided});
    EXPECT_THAT(state.begin(both).message(), HasSubstr("has been shrunk"));
}

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
        GroupIdentity identity{};
        std::vector<Rank> members{};  // as numbered in the world
    };
    Rank in_world(Rank rank) const { return group_.members[static_cast<std::size_t>(rank)]; }
    Rank own_place() const {
        return static_cast<Rank>(std::ranges::find(group_.members, self_) - group_.members.begin());
    }
    Result<Situation> ask(Rank rank) { return world_.ask(group_.identity, self_, in_world(rank)); }

    bool meets() {
        return world_.meet(group_.identity, self_, group_.members.size(),
                           std::chrono::milliseconds(60));
    }
    std::vector<Rank> missing() {
        const std::vector<Rank> renounced = state_->renounced();
        std::set<Rank> out(renounced.begin(), renounced.end());
        for (Rank rank = 0; std::cmp_less(rank, group_.members.size()); ++rank) {
            if (in_world(rank) == self_) continue;
            const auto answer = ask(rank);
            const bool is_here =
                answer.is_ok() && answer->shrinking.stage != Shrinking::Stage::kDecided;
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
                             .ask = [&](Rank peer) { return ask(peer); },
                             .tell = [&](const Shrinking& now) { state_->tell(now); },
                             .deadline = Deadline::after(std::chrono::milliseconds(60)),
                             .patience = std::chrono::milliseconds(30),
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
    world.event = [&](World& now, int asked) {
        if (asked == moment) now.cut(cuts);
        if (asked == later) now.cut(others);
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

TEST(AgreementTest, AtMostOneSideOfAGroupThatFallsApartGoesOn) {
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
    RecordProperty("worlds_that_went_on", all);
}

}  // namespace
}  // namespace pccl::comm
