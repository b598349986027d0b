// SPDX-License-Identifier: Apache-2.0

// How ranks agree on a smaller group, whoever dies meanwhile.
#include "csrc/comm/membership/agreement.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "csrc/base/text/text.h"
#include "tests/cpp/comm/world.h"

namespace pccl::comm {
namespace {

using ShrinkResult = Result<bootstrap::GroupIdentity>;

/// Four ranks in a world of their own.
struct Ranks {
    static constexpr int kSize = 4;
    bool await_ready = false;

    Ranks() {
        for (Rank rank = 0; rank < kSize; ++rank) states.push_back(world.enter(kOld, rank));
    }
    ShrinkState& state(Rank rank) { return *states[static_cast<std::size_t>(rank)]; }
    /// One rank's part in it.
    ShrinkResult shrink(Rank rank, const std::vector<Rank>& staying,
                        Duration limit = std::chrono::seconds(20)) {
        const auto is_dead = [&] {
            return world.is_dead(rank) ? Status::aborted("this rank is dead") : Status::ok();
        };
        const std::vector<Rank> left_out = others_of(staying, kSize);
        PCCL_TRY(state(rank).begin(left_out));
        Agreement agreement({.self = rank,
                             .old = kOld,
                             .staying = staying,
                             .left_out = left_out,
                             .query = [&](Rank peer) { return world.query(kOld, rank, peer); },
                             .publish = [&](const Shrinking& now) { state(rank).publish(now); },
                             .interrupted = is_dead,
                             .deadline = Deadline::after(limit)});
        bootstrap::GroupIdentity identity;
        for (bool all_have_confirmed = false; !all_have_confirmed;) {
            PCCL_ASSIGN_OR_RETURN(identity, agreement.propose());
            PCCL_ASSIGN_OR_RETURN(const bool all_are_ready,
                                  await_ready ? agreement.await_ready() : true);
            if (!all_are_ready) continue;
            state(rank).renounce(left_out);
            PCCL_ASSIGN_OR_RETURN(all_have_confirmed, agreement.confirm());
        }
        PCCL_TRY(is_dead());
        return identity;
    }
    /// By rank, what came of it; of all at the same time.
    std::map<Rank, ShrinkResult> shrink_all(const std::vector<Rank>& staying) {
        std::map<Rank, ShrinkResult> outcomes;
        std::mutex mutex;
        std::vector<std::thread> threads;
        for (const Rank rank : staying)
            threads.emplace_back([&, rank] {
                ShrinkResult outcome = shrink(rank, staying);
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
        ranks.world.event = [moment](World& world, int requested) {
            if (requested == moment) world.kill(2);
        };
        const auto outcomes = ranks.shrink_all({0, 1, 2});
        const ShrinkResult& one = outcomes.at(0);
        const ShrinkResult& other = outcomes.at(1);
        EXPECT_EQ(one.is_ok(), other.is_ok())
            << one.status().to_string() << " but " << other.status().to_string();
        for (const ShrinkResult& outcome : {one, other})
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
    ranks.world.event = [](World& world, int requested) {
        if (requested == 10) world.kill(1);
    };
    std::thread doomed([&] { EXPECT_FALSE(ranks.shrink(1, {0, 1, 2}).is_ok()); });
    const ShrinkResult outcome = ranks.shrink(0, {0, 1, 2});  // rank 2 never comes
    doomed.join();
    EXPECT_EQ(outcome.status().code(), StatusCode::kPeerLost);
    EXPECT_EQ(outcome.status().peer(), 1);
}

TEST(AgreementTest, WhoGaveUpMayCallAgain) {
    Ranks ranks;
    EXPECT_EQ(ranks.shrink(1, {0, 1, 3}, std::chrono::milliseconds(20)).status().code(),
              StatusCode::kTimeout);
    std::thread early([&] {
        const ShrinkResult outcome = ranks.shrink(0, {0, 1, 3});
        EXPECT_TRUE(outcome.is_ok()) << outcome.status().to_string();
    });
    // Rank 0 may have heard of this call when the next one comes.
    EXPECT_FALSE(ranks.shrink(1, {0, 1, 3}, std::chrono::milliseconds(50)).is_ok());
    std::thread last([&] { EXPECT_TRUE(ranks.shrink(3, {0, 1, 3}).is_ok()); });
    EXPECT_TRUE(ranks.shrink(1, {0, 1, 3}).is_ok());
    early.join();
    last.join();
}

TEST(AgreementTest, OtherListsAreDetectedAtOnce) {
    Ranks ranks;
    std::thread other([&] { EXPECT_FALSE(ranks.shrink(1, {0, 1, 3}).is_ok()); });
    const Status found = ranks.shrink(0, {0, 1, 2}).status();
    ranks.world.kill(0);
    other.join();
    EXPECT_EQ(found.code(), StatusCode::kMismatch);
    EXPECT_EQ(found.message(), "rank 1 leaves out rank 2; this rank leaves out rank 3");
}

TEST(AgreementTest, WhoLeavesOutMoreWaitsForTheOtherToSeeIt) {
    Ranks ranks;
    std::thread patient([&] { EXPECT_TRUE(ranks.shrink(1, {0, 1}).is_ok()); });
    ShrinkResult outcome = ranks.shrink(0, {0, 1, 2});
    EXPECT_EQ(outcome.status().message(),
              "rank 1 leaves out ranks 2, 3; this rank leaves out rank 3");
    outcome = ranks.shrink(0, {0, 1});
    EXPECT_TRUE(outcome.is_ok()) << outcome.status().to_string();
    patient.join();
}

TEST(AgreementTest, ALeftOutRankIsNotified) {
    Ranks ranks;
    static_cast<void>(ranks.shrink_all({0, 1, 3}));
    const ShrinkResult late = ranks.shrink(2, {0, 1, 2});
    EXPECT_EQ(late.status().code(), StatusCode::kUnavailable);
    EXPECT_EQ(late.status().message(),
              "rank 0 has gone on without this one, in a group of 3 that leaves out rank 2");
}

}  // namespace
}  // namespace pccl::comm
