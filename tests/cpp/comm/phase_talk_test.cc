// SPDX-License-Identifier: Apache-2.0

// Ranks send requests seldom while they wait for the outcome of a switch.
#include "csrc/comm/phase/phase_talk.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/comm/phase/coordinator_failover.h"
#include "csrc/comm/phase/phase_call.h"
#include "tests/cpp/comm/orphaned_ranks.h"

namespace pccl::comm {
namespace {

using Outcome = Switching::Outcome;
using Stage = Switching::Stage;

TEST_F(CoordinatorFailoverTest, AWaitingRankQueriesSeldom) {
    const TimePoint begun = system_clock().now();
    party_.shown[0].publish({.number = 1, .stage = Stage::kReady, .proposal = "pairs"});
    std::thread controller([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        party_.shown[0].publish({.number = 1,
                                 .stage = Stage::kDone,
                                 .switch_result = {.number = 1, .outcome = Outcome::kSwitched}});
    });
    expect_all(follow({1}), Outcome::kSwitched);
    controller.join();
    const auto longest_pauses = (system_clock().now() - begun) / std::chrono::milliseconds(20);
    EXPECT_LE(party_.questions, 15 + longest_pauses) << "pauses of 0.1 to 20 ms";
}

/// Who tells asks each rank once: that wakes it, and it asks back.
TEST_F(CoordinatorFailoverTest, ARankThatHasQueriedBackIsNotQueriedAgain) {
    const auto leader = std::make_shared<MemberGroup>(party_, 0);
    PhaseTalk talk(*leader, std::chrono::seconds(30));
    talk.own().number = 1;
    for (const Rank rank : {1, 2, 3}) {
        const auto index = static_cast<std::size_t>(rank);
        party_.shown[index].publish({.number = 1, .stage = Stage::kReady, .proposal = "pairs"});
        party_.shown[0].note_shown(rank, {.number = 1});
    }
    talk.publish_result({.outcome = Outcome::kSwitched});
    EXPECT_EQ(party_.questions, 3);
    EXPECT_EQ(party_.shown[0].published().switch_result.outcome, Outcome::kSwitched);
}

TEST_F(CoordinatorFailoverTest, ARankThatHasQueriedSinceHasNews) {
    const auto leader = std::make_shared<MemberGroup>(party_, 0);
    PhaseTalk talk(*leader, std::chrono::seconds(30));
    const auto requests = [this](Rank rank) {
        ASSERT_TRUE(MemberGroup(party_, rank).query(0, Deadline::never()).is_ok());
    };
    requests(1);
    EXPECT_EQ(talk.with_news({1, 2, 3}), std::vector<Rank>({1}));
    ASSERT_TRUE(talk.query(1).is_ok());
    EXPECT_EQ(talk.with_news({1, 2, 3}), std::vector<Rank>());
    requests(2);
    requests(3);
    EXPECT_EQ(talk.with_news({1, 2}), std::vector<Rank>({2})) << "no other is missing";
}

}  // namespace
}  // namespace pccl::comm
