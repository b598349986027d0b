// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/search/hamiltonian.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

namespace pccl::topo {
namespace {

using ::testing::SizeIs;

TEST(HamiltonianTest, FindsTheCheapestOfAllOrders) {
    std::mt19937 random(3);
    for (int n = 2; n <= 7; ++n) {
        CostMatrix costs(n);
        for (int i = 0; i < n; ++i)
            for (int j = 0; j < n; ++j) costs.at(i, j) = static_cast<double>(random() % 1000);
        std::vector<int> order(static_cast<std::size_t>(n));
        std::iota(order.begin(), order.end(), 0);
        std::map<int, double> least;
        do {
            if (order.front() != 0) continue;
            double cost = 0;
            for (std::size_t i = 1; i < order.size(); ++i) cost += costs.at(order[i - 1], order[i]);
            const auto [found, is_new] = least.emplace(order.back(), cost);
            if (!is_new) found->second = std::min(found->second, cost);
        } while (std::next_permutation(order.begin(), order.end()));
        const HeldKarp best(costs, 0);
        for (const auto& [last, cost] : least) {
            EXPECT_EQ(best.cost(last), cost);
            const std::vector<int> path = best.path(last);
            double along = 0;
            for (std::size_t i = 1; i < path.size(); ++i) along += costs.at(path[i - 1], path[i]);
            EXPECT_EQ(along, cost);
            EXPECT_EQ(path.front(), 0);
            EXPECT_EQ(path.back(), last);
        }
    }
}

TEST(HamiltonianTest, PacksAllCyclesOfACompleteGraph) {
    const std::size_t n = 7;
    std::vector<std::vector<int>> units(n, std::vector<int>(n, 1));
    for (std::size_t i = 0; i < n; ++i) units[i][i] = 0;
    std::int64_t steps = 10'000'000;
    EXPECT_THAT(disjoint_cycles(units, steps), SizeIs(3)) << "Walecki: (n - 1) / 2 for odd n";
}

}  // namespace
}  // namespace pccl::topo
