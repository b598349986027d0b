// SPDX-License-Identifier: Apache-2.0

// A program's sums on the emulated GPU: those that it has over links, to the bit.
#include "tests/cpp/schedule/ring_sums.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/fakes/device_ranks.h"

namespace pccl::comm {
namespace {

class EmulatedRingSumsTest : public testing::TestWithParam<int> {};

TEST_P(EmulatedRingSumsTest, AreAddedInTheProgramsOrderWhateverTheWindows) {
    const int ranks = GetParam();
    const auto ring = schedule::testing::lone_ring(ranks);
    for (const std::size_t count : {std::size_t{33}, std::size_t{1000}, std::size_t{600'001}}) {
        const auto wanted = schedule::testing::ring_sums(ranks, count);
        fakes::run_device_ranks({.size = ranks}, [&](fakes::DeviceRank& member) {
            auto data = schedule::testing::floats_of(member.group.rank(), count);
            const Block block{reinterpret_cast<std::byte*>(data.data()), count};
            const Status status = member.group.launch(
                {.type = DataType::kFloat32, .inputs = {&block, 1}, .outputs = {&block, 1}},
                nullptr, {.plan = {}, .schedule = ring});
            EXPECT_TRUE(status.is_ok()) << status.to_string();
            member.together.arrive_and_wait();
            EXPECT_TRUE(data == wanted) << count << " elements, rank " << member.group.rank();
        });
    }
}

INSTANTIATE_TEST_SUITE_P(Ranks, EmulatedRingSumsTest, testing::Values(3, 4));

}  // namespace
}  // namespace pccl::comm
