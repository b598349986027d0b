// SPDX-License-Identifier: Apache-2.0

// A program's sums over links: their bits depend on the program alone, not on what carries it.
#include "tests/cpp/schedule/ring_sums.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "tests/cpp/comm/ranks.h"

namespace pccl::comm {
namespace {

class RingSumsTest : public ::testing::TestWithParam<std::tuple<int, transport::TransportKind>> {};

TEST_P(RingSumsTest, AreAddedInTheProgramsOrderWhateverTheWindows) {
    const auto [ranks, transport] = GetParam();
    const RanksOptions options{.size = ranks,
                               .transports = transport,
                               .algorithm = "all_reduce=lone_ring",
                               .catalogue = schedule::testing::with_lone_ring(ranks)};
    for (const std::size_t count : {std::size_t{33}, std::size_t{1000}, std::size_t{3'000'001}}) {
        const auto wanted = schedule::testing::ring_sums(ranks, count);
        run_ranks(options, [&](CommunicatorImpl& comm) {
            auto data = schedule::testing::floats_of(comm.rank(), count);
            const Block block{reinterpret_cast<std::byte*>(data.data()), count};
            const Status status = comm.run(
                {.type = DataType::kFloat32, .inputs = {&block, 1}, .outputs = {&block, 1}});
            EXPECT_TRUE(status.is_ok()) << status.to_string();
            EXPECT_TRUE(data == wanted) << count << " elements, rank " << comm.rank();
        });
    }
}

INSTANTIATE_TEST_SUITE_P(RanksAndTransports, RingSumsTest,
                         ::testing::Combine(::testing::Values(3, 4),
                                            ::testing::Values(transport::TransportKind::kShm,
                                                              transport::TransportKind::kTcp)));

}  // namespace
}  // namespace pccl::comm
