// SPDX-License-Identifier: Apache-2.0

// Reductions of many contributions, against plain loops in double precision.
#include "csrc/collective/arithmetic/reduction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace pccl::arithmetic {
namespace {

using Floats = std::vector<float>;

template <typename T>
std::byte* bytes_of(std::vector<T>& values) {
    return reinterpret_cast<std::byte*>(values.data());
}

std::vector<Floats> random_contributions(std::size_t ranks, std::size_t count) {
    std::mt19937 random(7);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<Floats> all(ranks, Floats(count));
    for (Floats& values : all)
        for (float& value : values) value = uniform(random);
    return all;
}

double exact_sum(const std::vector<Floats>& all, std::size_t i) {
    double sum = 0;
    for (const Floats& values : all) sum += values[i];
    return sum;
}

class ReductionTest : public testing::TestWithParam<std::tuple<int, std::size_t>> {
   protected:
    [[nodiscard]] static std::size_t ranks() {
        return static_cast<std::size_t>(std::get<0>(GetParam()));
    }
    [[nodiscard]] static std::size_t count() { return std::get<1>(GetParam()); }
};

TEST_P(ReductionTest, SumsIntoAnyOfTheContributions) {
    const std::vector<Floats> all = random_contributions(ranks(), count());
    const Reduction sum(DataType::kFloat32, ReduceOp::kSum, static_cast<int>(ranks()));
    for (std::size_t target = 0; target <= ranks(); ++target) {
        std::vector<Floats> given = all;
        given.emplace_back(count());
        std::vector<const std::byte*> sources;
        for (std::size_t rank = 0; rank < ranks(); ++rank) sources.push_back(bytes_of(given[rank]));
        sum.apply(bytes_of(given[target]), sources, count());
        for (std::size_t i = 0; i < count(); ++i)
            ASSERT_NEAR(given[target][i], exact_sum(all, i), 1e-6 * static_cast<double>(ranks()));
    }
}

TEST_P(ReductionTest, HalvesAreRoundedOnce) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg}) {
        const Reduction reduction(DataType::kBfloat16, op, static_cast<int>(ranks()));
        std::vector<Floats> all = random_contributions(ranks(), count());
        std::vector<std::vector<std::uint16_t>> halves(ranks(),
                                                       std::vector<std::uint16_t>(count()));
        std::vector<const std::byte*> sources;
        for (std::size_t rank = 0; rank < ranks(); ++rank) {
            narrow(DataType::kBfloat16, bytes_of(halves[rank]), all[rank].data(), count());
            widen(DataType::kBfloat16, all[rank].data(), bytes_of(halves[rank]), count());
            sources.push_back(bytes_of(halves[rank]));
        }
        std::vector<std::uint16_t> result(count());
        reduction.apply(bytes_of(result), sources, count());
        Floats got(count());
        widen(DataType::kBfloat16, got.data(), bytes_of(result), count());
        for (std::size_t i = 0; i < count(); ++i) {
            const double divisor = op == ReduceOp::kAvg ? static_cast<double>(ranks()) : 1;
            const double exact = exact_sum(all, i) / divisor;
            // Half a unit in the last of bfloat16's 8 significant bits, and float32's own error.
            ASSERT_NEAR(got[i], exact, std::abs(exact) / 256 + 1e-6);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ReductionTest,
                         testing::Combine(testing::Values(2, 3, 4, 7),
                                          testing::Values(0, 1, 15, 2048, 10'001)));

TEST(ReductionTest, IntegerAveragesRoundTowardsZero) {
    std::vector<std::int32_t> a{7, -7};
    std::vector<std::int32_t> b{1, -1};
    std::vector<std::int32_t> c{2, -2};
    const std::vector<const std::byte*> sources{bytes_of(a), bytes_of(b), bytes_of(c)};
    Reduction(DataType::kInt32, ReduceOp::kAvg, 3).apply(bytes_of(b), sources, 2);
    EXPECT_EQ(b, (std::vector<std::int32_t>{3, -3}));
}

TEST(ReductionTest, IntegerAveragesDoNotWrap) {
    std::vector<std::uint8_t> a(5'000, 200);
    std::vector<std::uint8_t> b(5'000, 255);
    const std::vector<const std::byte*> sources{bytes_of(a), bytes_of(b)};
    Reduction(DataType::kUint8, ReduceOp::kAvg, 2).apply(bytes_of(a), sources, a.size());
    EXPECT_EQ(a, std::vector<std::uint8_t>(5'000, 227));
}

}  // namespace
}  // namespace pccl::arithmetic
