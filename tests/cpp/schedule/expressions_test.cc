// SPDX-License-Identifier: Apache-2.0

// Sums that the verifier knows again, beside a plain map of them.
#include "csrc/schedule/verifier/expressions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace pccl::schedule {
namespace {

using Operands = std::pair<Expression, Expression>;

/// Makes sums and checks each against those made before.
class Sums {
   public:
    Sums(int ranks, int chunks) : expressions_(ranks, chunks) {
        for (Rank rank = 0; rank < ranks; ++rank)
            for (int chunk = 0; chunk < chunks; ++chunk)
                made_.push_back(expressions_.input({rank, chunk}));
    }

    [[nodiscard]] const std::vector<Expression>& made() const { return made_; }
    [[nodiscard]] const Expressions& expressions() const { return expressions_; }

    void add(Expression a, Expression b) {
        const Expression sum = expressions_.sum(a, b, 0);
        const auto [known, is_new] = sum_of_.try_emplace(Operands(std::minmax(a, b)), sum);
        ASSERT_EQ(sum, known->second) << a << " + " << b;
        ASSERT_EQ(is_new, std::ranges::find(made_, sum) == made_.end()) << a << " + " << b;
        if (is_new) made_.push_back(sum);
        has_repeated_ |= !is_new;
        ASSERT_EQ(expressions_.has_repeated_sums(), has_repeated_);
    }

   private:
    Expressions expressions_;
    std::vector<Expression> made_;
    std::map<Operands, Expression> sum_of_;
    bool has_repeated_ = false;
};

TEST(ExpressionsTest, KeepsSumsWithOneOperandInCommonApart) {
    Sums sums(300, 1);
    const std::vector<Expression> inputs = sums.made();
    for (const Expression input : inputs)
        if (input != inputs.back()) sums.add(input, inputs.back());
    for (const Expression input : inputs)
        if (input != inputs.front()) sums.add(inputs.front(), input);
}

TEST(ExpressionsTest, RecognizesASumInEitherOrderOfOperands) {
    Sums sums(3, 2);
    const std::vector<Expression> inputs = sums.made();
    sums.add(inputs[0], inputs[4]);
    sums.add(inputs[2], inputs[4]);
    EXPECT_FALSE(sums.expressions().has_repeated_sums());
    sums.add(inputs[4], inputs[2]);
    EXPECT_TRUE(sums.expressions().has_repeated_sums());
    sums.add(inputs[4], inputs[0]);
}

TEST(ExpressionsTest, RecognizesSumsOfSums) {
    std::mt19937 random(7);
    for (int round = 0; round < 20; ++round) {
        Sums sums(4, 2);
        for (int i = 0; i < 400; ++i) {
            std::uniform_int_distribution<std::size_t> any(0, sums.made().size() - 1);
            sums.add(sums.made()[any(random)], sums.made()[any(random)]);
        }
    }
}

}  // namespace
}  // namespace pccl::schedule
