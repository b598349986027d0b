// SPDX-License-Identifier: Apache-2.0

// Smaller groups out of one, as MPI_Comm_split has them.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/cpp/comm/ranks.h"

namespace pccl::comm {
namespace {

using transport::TransportKind;

class SplitTest : public ::testing::TestWithParam<TransportKind> {};

/// What each rank of the group gives, in the order of its ranks.
std::vector<int> gathered_over(CommunicatorImpl& comm, int value) {
    std::vector<int> all(static_cast<std::size_t>(comm.size()));
    const Block input{reinterpret_cast<std::byte*>(&value), 1};
    std::vector<Block> outputs;
    for (int& each : all) outputs.push_back({reinterpret_cast<std::byte*>(&each), 1});
    const Status status = comm.run({.kind = CollectiveKind::kAllGather,
                                    .type = DataType::kInt32,
                                    .inputs = {&input, 1},
                                    .outputs = outputs});
    EXPECT_TRUE(status.is_ok()) << status.to_string();
    return all;
}

TEST_P(SplitTest, RanksOfOneColorAreInTheOrderOfTheirKeysAndThenOfRanks) {
    run_ranks({.size = 5, .transports = GetParam()}, [](CommunicatorImpl& comm) {
        // Of color 0: ranks 0, 2 and 4, the last one first; of color 1: 1 and 3, of one key.
        const int color = comm.rank() % 2;
        const auto half = comm.split(color, comm.rank() == 4 ? -1 : 7);
        ASSERT_TRUE(half.is_ok()) << half.status().to_string();
        const std::vector<int> members = color == 0 ? std::vector{4, 0, 2} : std::vector{1, 3};
        EXPECT_EQ(gathered_over(**half, comm.rank()), members);
        EXPECT_EQ((*half)->name(), color == 0 ? "world/0" : "world/1");
        EXPECT_EQ(gathered_over(comm, comm.rank()), (std::vector{0, 1, 2, 3, 4}));
    });
}

TEST_P(SplitTest, WhoGivesNoColorIsInNoGroup) {
    run_ranks({.size = 3, .transports = GetParam()}, [](CommunicatorImpl& comm) {
        const bool takes_part = comm.rank() != 1;
        const auto rest = comm.split(takes_part ? std::optional(3) : std::nullopt, 0);
        ASSERT_TRUE(rest.is_ok()) << rest.status().to_string();
        EXPECT_EQ(*rest != nullptr, takes_part);
        if (!takes_part) return;
        EXPECT_EQ(gathered_over(**rest, comm.rank()), (std::vector{0, 2}));
    });
}

TEST_P(SplitTest, GroupsOfOneColorMeetApartEachTime) {
    run_ranks({.size = 2, .transports = GetParam()}, [](CommunicatorImpl& comm) {
        const auto first = comm.split(0, comm.rank());
        const auto second = comm.split(0, -comm.rank());
        ASSERT_TRUE(first.is_ok()) << first.status().to_string();
        ASSERT_TRUE(second.is_ok()) << second.status().to_string();
        EXPECT_EQ(gathered_over(**second, comm.rank()), (std::vector{1, 0}));
        EXPECT_EQ(gathered_over(**first, comm.rank()), (std::vector{0, 1}));
        const auto nested = (*second)->split((*second)->rank(), 0);
        ASSERT_TRUE(nested.is_ok()) << nested.status().to_string();
        EXPECT_EQ((*nested)->size(), 1);
    });
}

TEST_P(SplitTest, ANegativeColorIsRefusedBeforeAnythingIsSent) {
    run_ranks({.size = 2, .transports = GetParam()}, [](CommunicatorImpl& comm) {
        const auto none = comm.split(-1, 0);
        EXPECT_EQ(none.status().code(), StatusCode::kInvalidArgument);
        EXPECT_EQ(comm.sequence(), 0U);
        EXPECT_EQ(gathered_over(comm, comm.rank()), (std::vector{0, 1}));
    });
}

INSTANTIATE_TEST_SUITE_P(, SplitTest, ::testing::Values(TransportKind::kShm, TransportKind::kTcp),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

}  // namespace
}  // namespace pccl::comm
