// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/search/packing.h"

#include <gmock/gmock.h>

#include <random>

#include "tests/cpp/topo/machines.h"

namespace pccl::topo {
namespace {

using ::testing::Each;

TEST(PackingTest, IsTheOptimumOfSmallPrograms) {
    const std::vector<Usage> routes{
        {{0, 1.0}, {1, 1.0}}, {{1, 1.0}, {2, 1.0}}, {{0, 1.0}, {2, 1.0}}};
    const Packing packing = pack(routes, std::vector<double>{4, 4, 4});
    EXPECT_DOUBLE_EQ(packing.total, 6);
    EXPECT_THAT(packing.amounts, Each(2));
    double priced = 0;
    for (const auto& [link, price] : packing.prices) priced += 4 * price;
    EXPECT_DOUBLE_EQ(priced, 6) << "prices are a certificate of the optimum";
    EXPECT_DOUBLE_EQ(pack_evenly(routes, std::vector<double>{4, 4, 1}).total, 1.5);
}

TEST(PackingTest, PricesCertifyRandomPrograms) {
    std::mt19937 random(7);
    for (int round = 0; round < 200; ++round) {
        std::vector<double> capacity(12);
        for (double& width : capacity) width = 1 + static_cast<double>(random() % 40);
        std::vector<Usage> routes(8);
        for (Usage& route : routes)
            for (int i = 0; i < 4; ++i)
                route[static_cast<int>(random() % 12)] =
                    0.5 + 0.5 * static_cast<double>(random() % 3);
        const Packing packing = pack(routes, capacity);
        std::vector<double> load(capacity.size());
        double worth = 0;
        for (std::size_t i = 0; i < routes.size(); ++i) {
            double cost = 0;
            for (const auto& [link, weight] : routes[i]) {
                load[static_cast<std::size_t>(link)] += weight * packing.amounts[i];
                const auto price = packing.prices.find(link);
                if (price != packing.prices.end()) cost += weight * price->second;
            }
            EXPECT_GE(cost, 1 - 1e-9);
        }
        for (std::size_t link = 0; link < capacity.size(); ++link)
            EXPECT_LE(load[link], capacity[link] + 1e-9);
        for (const auto& [link, price] : packing.prices)
            worth += price * capacity[static_cast<std::size_t>(link)];
        EXPECT_NEAR(worth, packing.total, 1e-9);
    }
}

}  // namespace
}  // namespace pccl::topo
