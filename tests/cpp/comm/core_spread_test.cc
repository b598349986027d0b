// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/shm/core_spread.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace pccl::comm {
namespace {

sys::CoreSet cores_up_to(std::size_t end) {
    sys::CoreSet cores;
    for (std::size_t core = 0; core < end; ++core) cores.set(core);
    return cores;
}

std::optional<std::size_t> goal(const std::vector<std::uint32_t>& cores, Rank self,
                                std::size_t allowed = 2) {
    return emptier_core(cores, self, cores_up_to(allowed));
}

TEST(CoreSpreadTest, OneOfThreeMovesToTheCoreOfOne) {
    EXPECT_EQ(goal({0, 1, 0, 0}, 3), 1U);
    EXPECT_EQ(goal({1, 1, 1, 0}, 2), 0U);
}

TEST(CoreSpreadTest, OnlyTheLastRankOfACoreMoves) {
    for (const Rank rank : {0, 1, 2}) EXPECT_FALSE(goal({0, 1, 0, 0}, rank));
}

TEST(CoreSpreadTest, AnEvenSpreadStays) {
    for (const Rank rank : {0, 1, 2, 3}) EXPECT_FALSE(goal({0, 1, 1, 0}, rank));
    for (const Rank rank : {0, 1, 2}) EXPECT_FALSE(goal({0, 1, 0}, rank));
}

TEST(CoreSpreadTest, TheEmptiestCoreIsTheGoal) {
    EXPECT_EQ(goal({0, 0, 0, 0, 1}, 3, 4), 2U);
    EXPECT_EQ(goal({0, 0, 0, 1, 2}, 2, 4), 3U);
}

TEST(CoreSpreadTest, ARankStaysOnItsCores) {
    EXPECT_FALSE(goal({0, 0, 0, 0}, 3, 1));
    EXPECT_FALSE(goal({5000, 5000, 5000}, 2)) << "a number that no set of cores has";
}

TEST(CoreSpreadTest, EveryUnevenSpreadBecomesEvenMoveByMove) {
    constexpr std::size_t kRanks = 9;
    std::vector<std::uint32_t> cores(kRanks, 2);
    bool any_moved = true;
    for (std::size_t round = 0; any_moved; ++round) {
        ASSERT_LT(round, kRanks);
        any_moved = false;
        for (std::size_t rank = 0; rank < kRanks; ++rank)
            if (const auto core = goal(cores, static_cast<Rank>(rank), 4)) {
                cores[rank] = static_cast<std::uint32_t>(*core);
                any_moved = true;
            }
    }
    std::array<int, 4> ranks{};
    for (const std::uint32_t core : cores) ++ranks[core];
    for (const int count : ranks) EXPECT_TRUE(count == 2 || count == 3) << count;
}

TEST(CoreSpreadTest, AMovedThreadMayRunOnItsFormerCores) {
    const sys::CoreSet before = sys::usable_cores();
    for (std::size_t core = 0; core < before.size(); ++core)
        EXPECT_EQ(move_to_core(core), before[core]) << core;
    EXPECT_EQ(sys::usable_cores(), before);
}

}  // namespace
}  // namespace pccl::comm
