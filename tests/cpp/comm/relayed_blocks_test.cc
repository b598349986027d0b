// SPDX-License-Identifier: Apache-2.0

// Collectives of which only pairs know the lengths of blocks, by schedules that pass blocks through
// other ranks: who asks for one by name says that all blocks have one length.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "tests/cpp/comm/parts.h"
#include "tests/cpp/comm/ranks.h"

namespace pccl::comm {
namespace {

using schedule::CollectiveKind;
using ::testing::HasSubstr;

constexpr std::size_t kLengths[] = {0, 1, 100, 100'000};

std::int32_t relayed_element(Rank from, Rank to, std::size_t index) {
    return static_cast<std::int32_t>(index) * 1000 + from * 30 + to;
}

Values relayed_values(Rank from, Rank to, std::size_t count) {
    Values values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = relayed_element(from, to, i);
    return values;
}

/// What one rank gives and gets.
struct Exchange {
    std::vector<Values> inputs{};
    std::vector<Values> outputs{};
    std::vector<Values> expected{};

    Status run(CommunicatorImpl& comm, CollectiveKind kind, Rank root) {
        const auto in = blocks_of(inputs);
        const auto out = blocks_of(outputs);
        return comm.run(
            {.kind = kind, .type = DataType::kInt32, .root = root, .inputs = in, .outputs = out});
    }
};

Exchange exchange_of(const CommunicatorImpl& comm, CollectiveKind kind, Rank root,
                     std::size_t count) {
    Exchange made;
    const auto give = [&](Rank to) {
        made.inputs.push_back(relayed_values(comm.rank(), to, count));
    };
    const auto get = [&](Rank from) {
        made.outputs.emplace_back(count, -1);
        made.expected.push_back(relayed_values(from, comm.rank(), count));
    };
    const bool is_root = comm.rank() == root;
    if (kind == CollectiveKind::kGather) give(root);
    if (kind == CollectiveKind::kScatter) get(root);
    for (Rank peer = 0; peer < comm.size(); ++peer) {
        if (kind == CollectiveKind::kAllToAll || (kind == CollectiveKind::kScatter && is_root))
            give(peer);
        if (kind == CollectiveKind::kAllToAll || (kind == CollectiveKind::kGather && is_root))
            get(peer);
    }
    return made;
}

struct RelayedCase {
    CollectiveKind kind;
    std::string algorithm;
};

class RelayedBlocksTest
    : public ::testing::TestWithParam<std::tuple<RelayedCase, transport::TransportKind, int>> {
   protected:
    static RelayedCase wanted() { return std::get<0>(GetParam()); }
    static RanksOptions options() {
        return {.size = std::get<2>(GetParam()),
                .transports = std::get<1>(GetParam()),
                .algorithm = std::string(to_string(wanted().kind)) + "=" + wanted().algorithm};
    }
};

TEST_P(RelayedBlocksTest, BringsEachBlockToItsPlace) {
    run_ranks(options(), [kind = wanted().kind](CommunicatorImpl& comm) {
        const Rank roots = schedule::is_rooted(kind) ? comm.size() : 1;
        for (Rank root = 0; root < roots; ++root) {
            for (const std::size_t count : kLengths) {
                Exchange exchange = exchange_of(comm, kind, root, count);
                const Status status = exchange.run(comm, kind, root);
                ASSERT_TRUE(status.is_ok()) << status.to_string();
                EXPECT_EQ(exchange.outputs, exchange.expected) << "root " << root << ", " << count;
            }
        }
    });
}

INSTANTIATE_TEST_SUITE_P(
    Schedules, RelayedBlocksTest,
    ::testing::Combine(::testing::Values(RelayedCase{CollectiveKind::kAllToAll, "bruck"},
                                         RelayedCase{CollectiveKind::kGather, "binomial"},
                                         RelayedCase{CollectiveKind::kScatter, "binomial"}),
                       ::testing::Values(transport::TransportKind::kShm,
                                         transport::TransportKind::kTcp),
                       ::testing::Values(2, 3, 6, 8)));

TEST(RelayedBlocksTest, RefusesBlocksOfSeveralLengthsBeforeAnythingIsSent) {
    run_ranks({.algorithm = "all_to_all=bruck"}, [](CommunicatorImpl& comm) {
        Exchange exchange = exchange_of(comm, CollectiveKind::kAllToAll, 0, 10);
        exchange.inputs[comm.rank() == 0 ? 1U : 0U].resize(7);
        const Status status = exchange.run(comm, CollectiveKind::kAllToAll, 0);
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
        EXPECT_THAT(status.message(), HasSubstr("bruck all_to_all passes blocks through other "
                                                "ranks, so all must have one length"));
        exchange = exchange_of(comm, CollectiveKind::kAllToAll, 0, 10);
        EXPECT_TRUE(exchange.run(comm, CollectiveKind::kAllToAll, 0).is_ok());
        EXPECT_EQ(exchange.outputs, exchange.expected);
    });
}

TEST(RelayedBlocksTest, RanksThatDisagreeAboutTheLengthAreNotified) {
    run_ranks({.size = 3, .algorithm = "all_to_all=bruck"}, [](CommunicatorImpl& comm) {
        Exchange exchange =
            exchange_of(comm, CollectiveKind::kAllToAll, 0, comm.rank() == 1 ? 20 : 10);
        const Status status = exchange.run(comm, CollectiveKind::kAllToAll, 0);
        EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.to_string();
    });
}

}  // namespace
}  // namespace pccl::comm
