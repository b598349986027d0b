// SPDX-License-Identifier: Apache-2.0

// Many copies in one call, of any length and alignment, against memcpy.

#include "csrc/kernels/copies.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

namespace pccl::kernels {
namespace {

/// From and to places that lie `gap` bytes apart at most, and do not overlap.
struct Scattered {
    std::vector<std::byte> source;
    std::vector<std::byte> target;
    std::vector<std::byte> expected;
    std::vector<Piece> pieces;

    Scattered(int count, std::size_t most, unsigned seed) {
        std::mt19937 random(seed);
        const std::size_t all = static_cast<std::size_t>(count) * (most + 32) + 32;
        source.resize(all);
        target.resize(all);
        for (std::byte& each : source) each = std::byte(random());
        expected = target;
        std::size_t from = 0;
        std::size_t to = 0;
        for (int i = 0; i < count; ++i) {
            const std::size_t bytes = random() % (most + 1);
            // Half of them aligned as engines like it.
            from = random() % 2 == 0 ? (from + 15) / 16 * 16 : from + random() % 16;
            to = random() % 2 == 0 ? (to + 15) / 16 * 16 : to + random() % 16;
            pieces.push_back({source.data() + from, target.data() + to, bytes});
            std::memcpy(expected.data() + to, source.data() + from, bytes);
            from += bytes;
            to += bytes;
        }
    }
};

class EmulatedCopiesTest : public ::testing::TestWithParam<std::pair<int, std::size_t>> {};

TEST_P(EmulatedCopiesTest, LandWhereTheyBelongAndNowhereElse) {
    const auto [count, most] = GetParam();
    const Scattered copies(count, most, 7);
    ASSERT_TRUE(launch_copies(copies.pieces, nullptr).is_ok());
    EXPECT_EQ(copies.target, copies.expected);
}

// Less than a launch, one and more; shorter than a packet, a unit, and longer.
INSTANTIATE_TEST_SUITE_P(Counts, EmulatedCopiesTest,
                         ::testing::Values(std::pair{1, 100}, std::pair{160, 40},
                                           std::pair{500, 700}, std::pair{9, 70000}));

TEST(EmulatedCopies, OfNothingLaunchNothing) {
    EXPECT_TRUE(launch_copies({}, nullptr).is_ok());
    const Piece nothing;
    EXPECT_TRUE(launch_copies({&nothing, 1}, nullptr).is_ok());
    EXPECT_TRUE(load_copies().is_ok());
}

}  // namespace
}  // namespace pccl::kernels
