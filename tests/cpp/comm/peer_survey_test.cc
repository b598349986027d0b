// SPDX-License-Identifier: Apache-2.0

// Signs of life of peers, by which a group finds out who is there.
#include "csrc/comm/diagnosis/peer_survey.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/cpp/comm/ranks.h"
#include "tests/cpp/comm/shrinks.h"

namespace pccl::comm {
namespace {

TEST_P(ShrinkTest, ASurveyReportsLivingRanks) {
    std::atomic<bool> has_left{false};
    std::atomic<bool> has_queried{false};
    run_ranks({.size = 3, .transports = GetParam()}, [&](CommunicatorImpl& comm) {
        EXPECT_EQ(reduced_over(comm), 3.0F);
        if (comm.rank() == 2) {
            EXPECT_TRUE(comm.shutdown().is_ok());
            has_left = true;
        }
        while (comm.rank() == 1 && !has_queried) std::this_thread::yield();
        if (comm.rank() != 0) return;
        while (!has_left) std::this_thread::yield();
        const auto peers = comm.survey(std::chrono::seconds(60)).value();
        ASSERT_EQ(peers.size(), 3U);
        EXPECT_EQ(peers[1].state, SurveyedPeer::Liveness::kHere);
        EXPECT_EQ(peers[1].last_sign, Duration::zero());
        EXPECT_EQ(peers[2].state, SurveyedPeer::Liveness::kGone);
        // The all_reduce needed it.
        ASSERT_TRUE(peers[2].last_sign.has_value());
        EXPECT_GT(*peers[2].last_sign, Duration::zero());
        EXPECT_LT(*peers[2].last_sign, std::chrono::minutes(1));
        const auto missing = comm.missing();
        ASSERT_TRUE(missing.is_ok()) << missing.status().to_string();
        EXPECT_EQ(*missing, std::vector<Rank>{2});
        has_queried = true;
    });
}

runtime::FlightEntry ended_well(runtime::FlightKind kind) {
    runtime::FlightEntry entry{.kind = kind};
    entry.finished = TimePoint(Duration(1));
    return entry;
}

runtime::FlightEntry collective(CollectiveKind kind, Rank root) {
    runtime::FlightEntry entry = ended_well(runtime::FlightKind::kCollective);
    entry.collective.kind = static_cast<std::uint8_t>(kind);
    entry.collective.root = static_cast<std::uint16_t>(root);
    return entry;
}

TEST(SignOfLifeTest, IsWhatNeededThePeer) {
    EXPECT_TRUE(is_sign_of(1, collective(CollectiveKind::kAllReduce, 0), 0));
    EXPECT_TRUE(is_sign_of(1, collective(CollectiveKind::kBroadcast, 1), 0));
    EXPECT_FALSE(is_sign_of(2, collective(CollectiveKind::kBroadcast, 1), 0));
    EXPECT_TRUE(is_sign_of(1, collective(CollectiveKind::kGather, 0), 0));
    EXPECT_FALSE(is_sign_of(1, collective(CollectiveKind::kGather, 2), 0));
    runtime::FlightEntry message = ended_well(runtime::FlightKind::kReceive);
    message.message.peer = 1;
    EXPECT_TRUE(is_sign_of(1, message, 0));
    EXPECT_FALSE(is_sign_of(2, message, 0));
    message.kind = runtime::FlightKind::kSend;
    EXPECT_FALSE(is_sign_of(1, message, 0));
    runtime::FlightEntry failed = collective(CollectiveKind::kAllReduce, 0);
    failed.outcome = StatusCode::kTimeout;
    EXPECT_FALSE(is_sign_of(1, failed, 0));
}

}  // namespace
}  // namespace pccl::comm
