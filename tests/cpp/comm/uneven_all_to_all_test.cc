// SPDX-License-Identifier: Apache-2.0

// all_to_all of blocks whose lengths only the two ranks concerned know, by every schedule that
// takes such: by pairwise a rank's steps follow each other, so that a long block must not hold up
// others for ever.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "tests/cpp/comm/parts.h"
#include "tests/cpp/comm/ranks.h"

namespace pccl::comm {
namespace {

/// Of what a rank sends to another, the same wherever it is asked for: nothing, a few elements, or
/// several windows.
std::size_t count_between(int call, Rank from, Rank to) {
    std::seed_seq seed{call, from, to};
    std::mt19937 random(seed);
    constexpr std::size_t kMost[] = {1, 100, 10'000, 300'000};
    return random() % kMost[random() % std::size(kMost)];
}

std::int32_t exchanged_element(Rank from, Rank to, std::size_t index) {
    return static_cast<std::int32_t>(index) * 100 + from * 10 + to;
}

Values sent_in_call(int call, Rank from, Rank to) {
    Values values(count_between(call, from, to));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = exchanged_element(from, to, i);
    return values;
}

void exchange_all(CommunicatorImpl& comm, int call) {
    std::vector<Values> inputs;
    std::vector<Values> outputs;
    for (Rank peer = 0; peer < comm.size(); ++peer) {
        inputs.push_back(sent_in_call(call, comm.rank(), peer));
        outputs.emplace_back(count_between(call, peer, comm.rank()), -1);
    }
    const auto in = blocks_of(inputs);
    const auto out = blocks_of(outputs);
    const Status status = comm.run({.kind = CollectiveKind::kAllToAll,
                                    .type = DataType::kInt32,
                                    .inputs = in,
                                    .outputs = out});
    ASSERT_TRUE(status.is_ok()) << status.to_string();
    for (Rank peer = 0; peer < comm.size(); ++peer)
        EXPECT_EQ(outputs[static_cast<std::size_t>(peer)], sent_in_call(call, peer, comm.rank()));
}

class UnevenAllToAllTest
    : public ::testing::TestWithParam<std::tuple<std::string, transport::TransportKind, int>> {};

TEST_P(UnevenAllToAllTest, BringsEachBlockToItsPlace) {
    const auto& [algorithm, transport, size] = GetParam();
    run_ranks({.size = size, .transports = transport, .algorithm = "all_to_all=" + algorithm},
              [](CommunicatorImpl& comm) {
                  for (int call = 0; call < 12; ++call) exchange_all(comm, call);
              });
}

INSTANTIATE_TEST_SUITE_P(Schedules, UnevenAllToAllTest,
                         ::testing::Combine(::testing::Values("one_shot", "pairwise"),
                                            ::testing::Values(transport::TransportKind::kShm,
                                                              transport::TransportKind::kTcp),
                                            ::testing::Values(2, 3, 5)));

}  // namespace
}  // namespace pccl::comm
