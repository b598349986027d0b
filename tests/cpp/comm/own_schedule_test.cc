// SPDX-License-Identifier: Apache-2.0

// Schedules that the library does not know, on links.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/cpp/comm/ranks.h"
#include "tests/cpp/schedule/star.h"

namespace pccl::comm {
namespace {

using ::testing::HasSubstr;

constexpr int kScheduleRanks = 3;

std::vector<std::int64_t> sum_of(CommunicatorImpl& comm, std::size_t count) {
    std::vector<std::int64_t> data(count);
    std::iota(data.begin(), data.end(), comm.rank() * 1000);
    const Block block{reinterpret_cast<std::byte*>(data.data()), count};
    const Status status =
        comm.run({.type = DataType::kInt64, .inputs = {&block, 1}, .outputs = {&block, 1}});
    EXPECT_TRUE(status.is_ok()) << status.to_string();
    return data;
}

RanksOptions with_star(int ranks) {
    return {.size = ranks,
            .algorithm = "all_reduce=star",
            .catalogue = schedule::testing::with_star(kScheduleRanks)};
}

class OwnScheduleTest : public ::testing::TestWithParam<transport::TransportKind> {};

TEST_P(OwnScheduleTest, GivesWhatTheBuiltInOnesGive) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{777}, std::size_t{300'000}}) {
        std::vector<std::vector<std::vector<std::int64_t>>> found(kScheduleRanks);
        for (const char* algorithm : {"all_reduce=star", "all_reduce=ring"}) {
            RanksOptions options = with_star(kScheduleRanks);
            options.transports = GetParam();
            options.algorithm = algorithm;
            run_ranks(options, [&](CommunicatorImpl& comm) {
                found[static_cast<std::size_t>(comm.rank())].push_back(sum_of(comm, count));
            });
        }
        for (const auto& results : found) {
            ASSERT_EQ(results.size(), 2U);
            EXPECT_EQ(results[0], results[1]);
            EXPECT_EQ(results[0].back(), 3000 + 3 * static_cast<std::int64_t>(count - 1));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Transports, OwnScheduleTest,
                         ::testing::Values(transport::TransportKind::kShm,
                                           transport::TransportKind::kTcp));

TEST(OwnSchedulesTest, AreExplainedBesideTheOthers) {
    run_ranks(with_star(kScheduleRanks), [](CommunicatorImpl& comm) {
        const auto ways = comm.explain(CollectiveKind::kAllReduce, 1024).value();
        const auto chosen = std::ranges::find_if(ways, &Prediction::is_chosen);
        ASSERT_NE(chosen, ways.end());
        EXPECT_EQ(chosen->algorithm(), "star");
        EXPECT_GT(chosen->seconds, 0);
    });
}

TEST(OwnSchedulesTest, ForAnotherNumberOfRanksAreRefusedWithTheReason) {
    run_ranks(with_star(2), [](CommunicatorImpl& comm) {
        const Status status = comm.explain(CollectiveKind::kAllReduce, 1024).status();
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
        EXPECT_THAT(status.message(), HasSubstr("star all_reduce is for 3 ranks, not 2"));
    });
}

}  // namespace
}  // namespace pccl::comm
