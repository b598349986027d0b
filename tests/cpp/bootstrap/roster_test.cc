// SPDX-License-Identifier: Apache-2.0

// How ranks exchange their endpoints, where somebody else writes to the store as well.
#include "csrc/bootstrap/roster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "tests/cpp/bootstrap/endpoints.h"
#include "tests/fakes/memory_store.h"

namespace pccl::bootstrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ExchangeRosterTest : public testing::Test {
   protected:
    Result<Roster> exchange(const Endpoint& mine) {
        return exchange_roster(store_, mine,
                               {.size = 2, .deadline = Deadline::after(std::chrono::seconds(20))});
    }
    void be_rank_0() {
        const auto met = exchange(endpoint(0));
        EXPECT_TRUE(met.is_ok()) << met.status().to_string();
    }

    fakes::MemoryStore store_;
};

TEST_F(ExchangeRosterTest, AllHaveWhatEachHasPublished) {
    std::thread rank_0([this] { be_rank_0(); });
    const auto met = exchange(endpoint(1, "node8"));
    rank_0.join();
    ASSERT_TRUE(met.is_ok()) << met.status().to_string();
    ASSERT_EQ(met->endpoints.size(), 2U);
    EXPECT_EQ(met->endpoints[0].host, "node7");
    EXPECT_EQ(met->endpoints[1].host, "node8");
}

TEST_F(ExchangeRosterTest, AllHaveTheTextsOfRankZero) {
    const auto with = [this](Rank rank, const std::string& costs) {
        return exchange_roster(store_, endpoint(rank),
                               {.size = 2,
                                .deadline = Deadline::after(std::chrono::seconds(20)),
                                .tuning = "tuning of " + costs,
                                .costs = costs});
    };
    std::thread rank_0([&] { EXPECT_EQ(with(0, "beat 1\n")->costs, "beat 1\n"); });
    const auto met = with(1, "beat 2\n");
    rank_0.join();
    ASSERT_TRUE(met.is_ok()) << met.status().to_string();
    EXPECT_EQ(met->costs, "beat 1\n");
    EXPECT_EQ(met->tuning, "tuning of beat 1\n");
}

TEST_F(ExchangeRosterTest, MoreThanARosterHoldsIsRefused) {
    std::thread rank_0([this] {
        static_cast<void>(exchange_roster(store_, endpoint(0),
                                          {.size = 2,
                                           .deadline = Deadline::after(std::chrono::seconds(20)),
                                           .costs = std::string(kMostCostsBytes + 1, 'x')}));
    });
    const auto met = exchange(endpoint(1));
    rank_0.join();
    EXPECT_EQ(met.status().code(), StatusCode::kPeerLost);
    EXPECT_EQ(met.status().peer(), 0);
}

TEST_F(ExchangeRosterTest, TheRosterOfAnEarlierRendezvousIsNone) {
    std::thread rank_0([this] { be_rank_0(); });
    ASSERT_TRUE(exchange(endpoint(1)).is_ok());
    rank_0.join();
    EXPECT_TRUE(is_superseded(exchange(endpoint(1)).status())) << "of the same process";
    Endpoint other = endpoint(1);
    other.pid = 7;
    const auto again = exchange(other);
    EXPECT_EQ(again.status().code(), StatusCode::kMismatch);
    EXPECT_THAT(again.status().message(),
                AllOf(HasSubstr("another process as this rank"), HasSubstr("rank 1 on node7")));
}

TEST_F(ExchangeRosterTest, WhoIsNotInTheRosterIsNotInTheGroup) {
    std::thread rank_0([this] { be_rank_0(); });
    ASSERT_TRUE(exchange(endpoint(1, "node8")).is_ok());
    rank_0.join();
    const auto twice = exchange(endpoint(1, "node9"));
    EXPECT_EQ(twice.status().code(), StatusCode::kMismatch);
    EXPECT_THAT(twice.status().message(),
                AllOf(HasSubstr("rank 1 on node8"), HasSubstr("a rank of its own")));
}

}  // namespace
}  // namespace pccl::bootstrap
