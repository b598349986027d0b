// SPDX-License-Identifier: Apache-2.0

// all_gather and reduce_scatter of blocks that differ in length, by every schedule that takes such,
// against plain loops: blocks of others pass through scratch, each with its own length.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "csrc/schedule/moved_blocks.h"
#include "tests/cpp/comm/parts.h"
#include "tests/cpp/comm/ranks.h"
#include "tests/cpp/comm/with_aggregation.h"
#include "tests/cpp/schedule/catalogue.h"

namespace pccl::comm {
namespace {

/// Of the block of `owner`, the same on all ranks: nothing, a few elements, or several windows.
std::size_t count_of(int call, Rank owner) {
    std::seed_seq seed{call, owner};
    std::mt19937 random(seed);
    constexpr std::size_t kMost[] = {1, 100, 10'000, 200'000};
    return random() % kMost[random() % std::size(kMost)];
}

std::int32_t uneven_element(Rank from, Rank owner, std::size_t index) {
    return static_cast<std::int32_t>(index % 1000) * 100 + (from + 1) * 10 + owner;
}

Values part(int call, Rank from, Rank owner) {
    Values values(count_of(call, owner));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = uneven_element(from, owner, i);
    return values;
}

Values uneven_sum(int call, int ranks, Rank owner) {
    Values sum(count_of(call, owner));
    for (Rank from = 0; from < ranks; ++from)
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += uneven_element(from, owner, i);
    return sum;
}

Status run_uneven(CommunicatorImpl& comm, CollectiveKind kind, std::vector<Values>& inputs,
                  std::vector<Values>& outputs) {
    const auto in = blocks_of(inputs);
    const auto out = blocks_of(outputs);
    return comm.run({.kind = kind, .type = DataType::kInt32, .inputs = in, .outputs = out});
}

void scatter_sums(CommunicatorImpl& comm, int call) {
    const Rank self = comm.rank();
    std::vector<Values> inputs;
    for (Rank owner = 0; owner < comm.size(); ++owner) inputs.push_back(part(call, self, owner));
    const std::vector<Values> before = inputs;
    std::vector<Values> outputs{Values(count_of(call, self), -1)};
    const Status status = run_uneven(comm, CollectiveKind::kReduceScatter, inputs, outputs);
    ASSERT_TRUE(status.is_ok()) << status.to_string();
    EXPECT_EQ(outputs.front(), uneven_sum(call, comm.size(), self)) << "call " << call;
    EXPECT_EQ(inputs, before);
    // Where the sum takes the place of the own block.
    const auto in = blocks_of(inputs);
    const Status in_place = comm.run({.kind = CollectiveKind::kReduceScatter,
                                      .type = DataType::kInt32,
                                      .inputs = in,
                                      .outputs = {&in[static_cast<std::size_t>(self)], 1}});
    ASSERT_TRUE(in_place.is_ok()) << in_place.to_string();
    EXPECT_EQ(inputs[static_cast<std::size_t>(self)], outputs.front()) << "call " << call;
}

void gather_all(CommunicatorImpl& comm, int call) {
    std::vector<Values> inputs{part(call, comm.rank(), comm.rank())};
    std::vector<Values> outputs;
    for (Rank owner = 0; owner < comm.size(); ++owner)
        outputs.emplace_back(count_of(call, owner), -1);
    const Status status = run_uneven(comm, CollectiveKind::kAllGather, inputs, outputs);
    ASSERT_TRUE(status.is_ok()) << status.to_string();
    for (Rank owner = 0; owner < comm.size(); ++owner)
        EXPECT_EQ(outputs[static_cast<std::size_t>(owner)], part(call, owner, owner));
}

void exchange_blocks(const RanksOptions& options, CollectiveKind kind) {
    SCOPED_TRACE(std::to_string(options.size) + " ranks, " + options.algorithm);
    run_ranks(options, [kind](CommunicatorImpl& comm) {
        for (int call = 0; call < 6; ++call)
            kind == CollectiveKind::kAllGather ? gather_all(comm, call) : scatter_sums(comm, call);
    });
}

/// By name, of links: the segment has ways of its own.
std::string by(CollectiveKind kind, const std::string& name) {
    return std::string(schedule::to_string(kind)) + "=" + name;
}

class UnevenBlocksTest : public ::testing::TestWithParam<schedule::SourcePtr> {};

TEST_P(UnevenBlocksTest, AreRightFor2To9Ranks) {
    for (int size = 2; size <= 9; ++size)
        exchange_blocks({.size = size, .algorithm = by(GetParam()->kind, GetParam()->name)},
                        GetParam()->kind);
}

std::vector<schedule::SourcePtr> of_uneven_blocks() {
    std::vector<schedule::SourcePtr> sources = schedule::testing::all_sources();
    std::erase_if(sources, [](const schedule::SourcePtr& source) {
        return !schedule::has_known_blocks(source->kind) || !source->takes_uneven;
    });
    return sources;
}

INSTANTIATE_TEST_SUITE_P(Schedules, UnevenBlocksTest, ::testing::ValuesIn(of_uneven_blocks()),
                         [](const auto& test) { return schedule::testing::name_of(test.param); });

TEST(UnevenBlocksOfPatTest, AreRightWithAnyNumberOfThemInAMessage) {
    for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter})
        for (int size = 2; size <= 9; ++size)
            for (int aggregation = 1; aggregation < size; aggregation *= 2)
                exchange_blocks({.size = size,
                                 .algorithm = by(kind, "counted"),
                                 .catalogue = with_aggregation("pat", kind, aggregation)},
                                kind);
}

TEST(UnevenBlocksOfPatTest, OfHalvesAreAddedInFloats) {
    constexpr int kRanks = 5;
    run_ranks({.size = kRanks, .algorithm = "reduce_scatter=pat"}, [](CommunicatorImpl& comm) {
        std::vector<std::vector<std::uint16_t>> inputs;
        std::vector<Block> in;
        for (Rank owner = 0; owner < kRanks; ++owner)
            // 1 of rank 0, 2^-9 of the others, as bfloat16 has them.
            inputs.emplace_back(static_cast<std::size_t>(3 * owner),
                                comm.rank() == 0 ? 0x3f80 : 0x3b00);
        for (auto& block : inputs)
            in.push_back({reinterpret_cast<std::byte*>(block.data()), block.size()});
        std::vector<std::uint16_t> sum(static_cast<std::size_t>(3 * comm.rank()));
        const Block out{reinterpret_cast<std::byte*>(sum.data()), sum.size()};
        const Status status = comm.run({.kind = CollectiveKind::kReduceScatter,
                                        .type = DataType::kBfloat16,
                                        .inputs = in,
                                        .outputs = {&out, 1}});
        ASSERT_TRUE(status.is_ok()) << status.to_string();
        // 1 + 4 * 2^-9, the next number after 1: 2^-9 alone is lost beside it.
        for (const std::uint16_t each : sum) EXPECT_EQ(each, 0x3f81);
    });
}

}  // namespace
}  // namespace pccl::comm
