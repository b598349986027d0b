// SPDX-License-Identifier: Apache-2.0

// How ranks go on where rank 0 dies while phases are switched: alike, whatever each has heard.
#include "csrc/comm/phase/coordinator_failover.h"

#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <thread>

#include <pccl/deadline.h>
#include "csrc/comm/diagnosis/self_report.h"
#include "csrc/comm/phase/phase_call.h"
#include "csrc/comm/phase/phase_talk.h"
#include "tests/cpp/comm/orphaned_ranks.h"

namespace pccl::comm {
namespace {

using ::testing::HasSubstr;
using Outcome = Switching::Outcome;
using Stage = Switching::Stage;

TEST_F(CoordinatorFailoverTest, ARankWithTheResultSendsItToTheOthers) {
    party_.shown[2].publish(
        {.number = 1,
         .stage = Stage::kDone,
         .switch_result = {.number = 1, .outcome = Outcome::kSwitched, .report = "{}"}});
    const auto reported = follow({1, 3}, {0});
    expect_all(reported, Outcome::kSwitched);
    for (const auto& each : reported) EXPECT_TRUE(each->why.is_ok()) << "it is known how it ended";
    EXPECT_EQ(looks_, 0);
}

TEST_F(CoordinatorFailoverTest, WhereNoRankHasTheResultTheLowestReadsTheSwitches) {
    for (const bool is_switched : {true, false}) {
        shown_ = is_switched;
        party_.is_there[0] = true;
        const auto reported = follow({1, 2, 3}, {0});
        expect_all(reported, is_switched ? Outcome::kSwitched : Outcome::kStayed);
        for (const auto& each : reported) {
            EXPECT_EQ(each->why.code(), StatusCode::kPeerLost);
            EXPECT_EQ(each->why.peer(), 0);
        }
        EXPECT_EQ(reader_, 1);
    }
    EXPECT_EQ(looks_, 2);
}

TEST_F(CoordinatorFailoverTest, TheNextOneReadsThemWhereTheLowestIsGoneToo) {
    // It is ready, too, and does not say so any more.
    expect_all(follow({2, 3}, {0, 1}), Outcome::kSwitched);
    EXPECT_EQ(reader_, 2);
}

TEST_F(CoordinatorFailoverTest, NothingWasSwitchedIfOneRankHadNotCome) {
    expect_all(follow({1, 3}, {0}), Outcome::kStayed);
    EXPECT_EQ(looks_, 0);
}

TEST_F(CoordinatorFailoverTest, AnUnreadableResultIsUnknown) {
    shown_ = Status::unavailable("switch ocs: no answer to connect within 5 s");
    const auto reported = follow({1, 2, 3}, {0});
    expect_all(reported, Outcome::kUnknown);
    for (const auto& each : reported) {
        EXPECT_EQ(each->why.peer(), 0);
        EXPECT_THAT(each->why.message(), HasSubstr("commit to pairs: switch ocs: no answer"));
    }
}

TEST_F(CoordinatorFailoverTest, RankZeroSendsTheResultAlsoWhereAnotherRankIsGoneMeanwhile) {
    party_.shown[0].publish({.number = 1, .stage = Stage::kReady, .proposal = "pairs"});
    party_.is_there[2] = false;
    party_.lost = 2;
    std::thread controller([&] {
        // A commit that takes longer than to find out who is gone.
        while (party_.shown[1].published().stage != Stage::kReady) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        party_.shown[0].publish({.number = 1,
                                 .stage = Stage::kDone,
                                 .switch_result = {.number = 1, .outcome = Outcome::kSwitched}});
    });
    expect_all(follow({1, 3}), Outcome::kSwitched);
    controller.join();
}

PhaseCallOptions long_wait_of(const std::shared_ptr<MemberGroup>& leader) {
    return {.group = *leader,
            .groups = {leader},
            .proposal = "pairs",
            .deadline = Deadline::after(std::chrono::seconds(60)),
            .answer_timeout = std::chrono::seconds(60)};
}

/// However often strangers ask this process.
TEST_F(CoordinatorFailoverTest, RankZeroDetectsAGoneRankThatNeverQueries) {
    for (const std::size_t rank : {1U, 2U})
        party_.shown[rank].publish({.number = 1, .stage = Stage::kReady, .proposal = "pairs"});
    std::atomic<bool> is_over = false;
    std::thread strangers([&] {
        while (!is_over) query_bell().ring();
    });
    const auto leader = std::make_shared<MemberGroup>(party_, 0);
    PhaseCall call(long_wait_of(leader));
    std::thread death([&] {
        while (party_.questions < 3) std::this_thread::yield();  // it was asked, and not ready
        party_.is_there[3] = false;
    });
    const Status gathered = call.gather();
    is_over = true;
    strangers.join();
    death.join();
    EXPECT_EQ(gathered.code(), StatusCode::kPeerLost);
    EXPECT_EQ(gathered.peer(), 3);
}

/// Each once where all are ready, and whoever is not once more when it asks.
TEST_F(CoordinatorFailoverTest, RankZeroDetectsRanksThatAreReadyLate) {
    for (const std::size_t rank : {1U, 2U})
        party_.shown[rank].publish({.number = 1, .stage = Stage::kReady, .proposal = "pairs"});
    std::thread late([&] {
        while (party_.questions < 3) std::this_thread::yield();
        party_.shown[3].publish({.number = 1, .stage = Stage::kReady, .proposal = "pairs"});
        EXPECT_TRUE(MemberGroup(party_, 3).query(0, Deadline::never()).is_ok());
        query_bell().ring();
    });
    const auto leader = std::make_shared<MemberGroup>(party_, 0);
    PhaseCall call(long_wait_of(leader));
    EXPECT_TRUE(call.gather().is_ok());
    late.join();
}

}  // namespace
}  // namespace pccl::comm
