// SPDX-License-Identifier: Apache-2.0

// Every generator against plain loops over integers, in random orders of execution.
#include "tests/cpp/schedule/interpreter.h"

#include <gtest/gtest.h>

#include "tests/cpp/schedule/catalogue.h"

namespace pccl::schedule::testing {
namespace {

constexpr int kOrdersTried = 10;

class GeneratedNumbersTest : public ::testing::TestWithParam<SourcePtr> {};

TEST_P(GeneratedNumbersTest, EqualPlainLoops) {
    std::mt19937_64 random(1);
    for (int ranks = 1; ranks <= 9; ++ranks) {
        for (Rank root = 0; root < roots(GetParam(), ranks); ++root) {
            for (int multiple = 1; multiple <= 3; ++multiple) {
                const Shape shape = shape_of(GetParam(), ranks, root, multiple);
                const auto schedule = generate(*GetParam(), shape);
                ASSERT_TRUE(schedule.is_ok()) << schedule.status().to_string();
                for (const Placement placement : placements(shape.kind)) {
                    for (int order = 0; order < kOrdersTried; ++order) {
                        ASSERT_EQ(interpret(schedule.value(), placement, random), "")
                            << (placement == Placement::kInPlace ? "in place\n" : "out of place\n")
                            << to_string(schedule.value());
                    }
                }
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, GeneratedNumbersTest, ::testing::ValuesIn(all_sources()),
                         [](const auto& source) { return name_of(source.param); });

}  // namespace
}  // namespace pccl::schedule::testing
