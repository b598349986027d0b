// Smaller groups out of larger ones, and what is known of the ranks of a group.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/cpp/comm/ranks.h"

namespace pccl::comm {
namespace {

using testing::HasSubstr;
using transport::TransportKind;

class ShrinkTest : public testing::TestWithParam<TransportKind> {};

float reduced_over(Communicator& comm) {
    float value = 1.0F;
    const Block block{reinterpret_cast<std::byte*>(&value), 1};
    const Status status = comm.run({.inputs = {&block, 1}, .outputs = {&block, 1}});
    EXPECT_TRUE(status.is_ok()) << status.to_string();
    return value;
}

TEST_P(ShrinkTest, ThoseWhoStayGoOnInTheSameOrder) {
    run_ranks({.size = 4, .transports = GetParam()}, [](Communicator& comm) {
        EXPECT_EQ(reduced_over(comm), 4.0F);
        const Rank excluded = 1;
        if (comm.rank() == excluded) return;
        const auto shrunk = comm.shrink({&excluded, 1}, {});
        ASSERT_TRUE(shrunk.is_ok()) << shrunk.status().to_string();
        EXPECT_EQ((*shrunk)->size(), 3);
        EXPECT_EQ((*shrunk)->rank(), comm.rank() == 0 ? 0 : comm.rank() - 1);
        EXPECT_EQ((*shrunk)->name(), "world:shrunk");
        EXPECT_EQ(reduced_over(**shrunk), 3.0F);
        EXPECT_TRUE((*shrunk)->barrier().is_ok());
    });
}

TEST_P(ShrinkTest, WorksOnAGroupThatIsBroken) {
    run_ranks({.size = 3, .transports = GetParam()}, [](Communicator& comm) {
        EXPECT_EQ(reduced_over(comm), 3.0F);
        comm.abort(Status::aborted("a test"));
        const Rank excluded = 2;
        if (comm.rank() == excluded) return;
        const auto shrunk = comm.shrink({&excluded, 1}, {.name = "rest"});
        ASSERT_TRUE(shrunk.is_ok()) << shrunk.status().to_string();
        EXPECT_EQ((*shrunk)->name(), "rest");
        EXPECT_EQ(reduced_over(**shrunk), 2.0F);
        EXPECT_TRUE((*shrunk)->barrier().is_ok());
    });
}

TEST_P(ShrinkTest, NamesARankThatDoesNotShrinkAlike) {
    run_ranks({.size = 3, .transports = GetParam()}, [](Communicator& comm) {
        EXPECT_EQ(reduced_over(comm), 3.0F);
        if (comm.rank() != 0) return;
        const Rank excluded = 2;
        const auto shrunk =
            comm.shrink({&excluded, 1}, {.timeout = std::chrono::milliseconds(300)});
        EXPECT_EQ(shrunk.status().code(), StatusCode::kTimeout);
        EXPECT_EQ(shrunk.status().peer(), 1);
        EXPECT_THAT(shrunk.status().message(), HasSubstr("rank 1 does not shrink the group"));
    });
}

TEST_P(ShrinkTest, RefusesToLeaveOutWhoIsNotThereOrItself) {
    run_ranks({.size = 2, .transports = GetParam()}, [](Communicator& comm) {
        for (const Rank wrong : {-1, 2, comm.rank()})
            EXPECT_EQ(comm.shrink({&wrong, 1}, {}).status().code(), StatusCode::kInvalidArgument);
        EXPECT_EQ(reduced_over(comm), 2.0F);
    });
}

TEST_P(ShrinkTest, ASurveyTellsSignsOfLife) {
    std::atomic<bool> has_left{false};
    std::atomic<bool> has_asked{false};
    run_ranks({.size = 3, .transports = GetParam()}, [&](Communicator& comm) {
        EXPECT_EQ(reduced_over(comm), 3.0F);
        if (comm.rank() == 2) {
            EXPECT_TRUE(comm.shutdown().is_ok());
            has_left = true;
        }
        while (comm.rank() == 1 && !has_asked) std::this_thread::yield();
        if (comm.rank() != 0) return;
        while (!has_left) std::this_thread::yield();
        const auto peers = comm.survey(std::chrono::seconds(5)).value();
        has_asked = true;
        ASSERT_EQ(peers.size(), 3U);
        EXPECT_EQ(peers[1].state, PeerHealth::State::kHere);
        EXPECT_EQ(peers[1].last_sign, Duration::zero());
        EXPECT_EQ(peers[2].state, PeerHealth::State::kGone);
        // The all_reduce needed it.
        ASSERT_TRUE(peers[2].last_sign.has_value());
        EXPECT_GT(*peers[2].last_sign, Duration::zero());
        EXPECT_LT(*peers[2].last_sign, std::chrono::minutes(1));
        EXPECT_EQ(absent(peers), std::vector<Rank>{2});
    });
}

INSTANTIATE_TEST_SUITE_P(, ShrinkTest, testing::Values(TransportKind::kShm, TransportKind::kTcp),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

FlightEntry ended_well(FlightKind kind) {
    FlightEntry entry{.kind = kind};
    entry.finished = TimePoint(Duration(1));
    return entry;
}

FlightEntry collective(CollectiveKind kind, Rank root) {
    FlightEntry entry = ended_well(FlightKind::kCollective);
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
    FlightEntry message = ended_well(FlightKind::kReceive);
    message.message.peer = 1;
    EXPECT_TRUE(is_sign_of(1, message, 0));
    EXPECT_FALSE(is_sign_of(2, message, 0));
    message.kind = FlightKind::kSend;
    EXPECT_FALSE(is_sign_of(1, message, 0));
    FlightEntry failed = collective(CollectiveKind::kAllReduce, 0);
    failed.outcome = StatusCode::kTimeout;
    EXPECT_FALSE(is_sign_of(1, failed, 0));
}

}  // namespace
}  // namespace pccl::comm
