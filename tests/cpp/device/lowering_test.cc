// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/launch/lowering.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>

namespace pccl::device {
namespace {

TEST(TwoPhasesTest, PartsCoverATensorOnceInOrder) {
    for (const int ranks : {3, 4, 7, 8})
        for (const std::size_t count : {std::size_t{100} << 20, (std::size_t{100} << 20) + 13}) {
            std::byte* const base = std::bit_cast<std::byte*>(std::size_t{1} << 40);
            const Block block{base, count};
            const Collective whole{.inputs = {&block, 1}, .outputs = {&block, 1}};
            const auto phases = two_phases(whole, {}, ranks);
            ASSERT_TRUE(phases.has_value());
            std::byte* at = base;
            std::size_t covered = 0;
            for (const Block& part : phases->inputs) {
                EXPECT_EQ(part.data, at);
                EXPECT_EQ(std::bit_cast<std::uintptr_t>(part.data) % 128, 0U);
                at += part.count * sizeof(float);
                covered += part.count;
            }
            EXPECT_EQ(covered, count);
            for (Rank rank = 0; rank < ranks; ++rank) {
                EXPECT_TRUE(check_shape(phases->reduce_scatter(whole, rank), rank, ranks).is_ok());
                EXPECT_TRUE(check_shape(phases->all_gather(whole, rank), rank, ranks).is_ok());
            }
        }
    const Block small{std::bit_cast<std::byte*>(std::size_t{1} << 40), 1000};
    EXPECT_FALSE(two_phases({.inputs = {&small, 1}, .outputs = {&small, 1}}, {}, 4).has_value());
}

}  // namespace
}  // namespace pccl::device
