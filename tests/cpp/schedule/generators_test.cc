// Every generator is proven for every number of ranks from 1 to 64, every root and several chunk
// counts.
#include "csrc/schedule/generators.h"

#include <gtest/gtest.h>

#include "csrc/schedule/verifier.h"
#include "tests/cpp/schedule/catalogue.h"

namespace pccl::schedule {
namespace {

using testing::Maker;

class GeneratedScheduleTest : public ::testing::TestWithParam<Maker> {};

TEST_P(GeneratedScheduleTest, IsProvenForUpTo64Ranks) {
    for (int ranks = 1; ranks <= 64; ++ranks) {
        for (Rank root = 0; root < testing::roots(GetParam(), ranks); ++root) {
            for (int multiple = 1; multiple <= 3; ++multiple) {
                const Shape shape = testing::shape_of(GetParam(), ranks, root, multiple);
                const auto schedule = generate(GetParam().algorithm, shape);
                ASSERT_TRUE(schedule.is_ok()) << schedule.status().to_string();
                for (const Placement placement : testing::placements(shape.kind)) {
                    const auto verdict = verify(schedule.value(), placement);
                    ASSERT_TRUE(verdict.is_ok())
                        << ranks << " ranks, root " << root << ", " << shape.chunks << " chunks, "
                        << (placement == Placement::kInPlace ? "in place" : "out of place") << ": "
                        << verdict.status().to_string();
                    EXPECT_TRUE(verdict.value().bit_identical);
                }
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, GeneratedScheduleTest, ::testing::ValuesIn(testing::all_makers()),
                         [](const auto& maker) { return testing::name_of(maker.param); });

}  // namespace
}  // namespace pccl::schedule
