// SPDX-License-Identifier: Apache-2.0

// Every generator is proven for every number of ranks from 1 to 64, every root and several chunk
// counts.
#include "csrc/schedule/generators/generators.h"

#include <gtest/gtest.h>

#include "csrc/schedule/moved_blocks.h"
#include "csrc/schedule/verifier/verifier.h"
#include "tests/cpp/schedule/catalogue.h"

namespace pccl::schedule {
namespace {

class GeneratedScheduleTest : public ::testing::TestWithParam<SourcePtr> {};

TEST_P(GeneratedScheduleTest, IsProvenForUpTo64Ranks) {
    for (int ranks = 1; ranks <= 64; ++ranks) {
        for (Rank root = 0; root < testing::roots(GetParam(), ranks); ++root) {
            for (int multiple = 1; multiple <= 3; ++multiple) {
                const Shape shape = testing::shape_of(GetParam(), ranks, root, multiple);
                const auto schedule = generate(*GetParam(), shape);
                ASSERT_TRUE(schedule.is_ok()) << schedule.status().to_string();
                for (const Placement placement : testing::placements(shape.kind)) {
                    const auto verdict = verify(schedule.value(), placement);
                    ASSERT_TRUE(verdict.is_ok())
                        << ranks << " ranks, root " << root << ", " << shape.chunks << " chunks, "
                        << (placement == Placement::kInPlace ? "in place" : "out of place") << ": "
                        << verdict.status().to_string();
                    EXPECT_TRUE(verdict.value().bit_identical);
                    if (has_known_blocks(shape.kind)) {
                        EXPECT_EQ(verdict.value().takes_uneven, GetParam()->takes_uneven)
                            << ranks << " ranks, " << shape.chunks << " chunks";
                    }
                }
            }
        }
    }
}

/// Links are cut into windows by it: too much is a window more, of a few bytes.
TEST_P(GeneratedScheduleTest, HasMessagesOfTheStatedLength) {
    EXPECT_GE(GetParam()->longest_message(testing::shape_of(GetParam(), 1, 0, 1)), 1);
    for (int ranks = 2; ranks <= 64; ++ranks) {
        for (int aggregation = 0; aggregation < (GetParam()->aggregates ? ranks : 1);
             aggregation = std::max(1, 2 * aggregation)) {
            Shape shape = testing::shape_of(GetParam(), ranks, 0, 2);
            shape.aggregation = aggregation;
            const auto schedule = generate(*GetParam(), shape);
            ASSERT_TRUE(schedule.is_ok()) << schedule.status().to_string();
            EXPECT_EQ(GetParam()->longest_message(shape), testing::longest_message(*schedule))
                << ranks << " ranks, aggregation " << aggregation;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, GeneratedScheduleTest, ::testing::ValuesIn(testing::all_sources()),
                         [](const auto& source) { return testing::name_of(source.param); });

Shape all_reduce_over(int ranks, int chunks) {
    return {.kind = CollectiveKind::kAllReduce, .ranks = ranks, .chunks = chunks};
}

TEST(GenerateTest, RefusesWhatIsOutOfRange) {
    const auto code = [](std::string_view name, const Shape& shape) {
        return generate(name, shape).status().code();
    };
    Shape shape = all_reduce_over(4, 4);
    EXPECT_EQ(code("ring", shape), StatusCode::kOk);
    EXPECT_EQ(code("ring", all_reduce_over(0, 4)), StatusCode::kInvalidArgument);
    EXPECT_EQ(code("ring", all_reduce_over(65537, 65537)), StatusCode::kInvalidArgument);
    EXPECT_EQ(code("ring", all_reduce_over(4, 0)), StatusCode::kInvalidArgument);
    EXPECT_EQ(code("ring", all_reduce_over(4, 6)), StatusCode::kInvalidArgument);
    EXPECT_EQ(code("one_shot", all_reduce_over(4, (1 << 26) + 1)), StatusCode::kInvalidArgument);
    shape.root = 1;
    EXPECT_EQ(code("ring", shape), StatusCode::kInvalidArgument);
    shape.root = 0;
    shape.slots = 1;
    EXPECT_EQ(code("ring", shape), StatusCode::kInvalidArgument);
    EXPECT_EQ(code("two_shot", shape), StatusCode::kOk);
    shape.slots = 0;
    EXPECT_EQ(code("two_shot", shape), StatusCode::kInvalidArgument);
}

TEST(GenerateTest, RefusesWhatTheAlgorithmDoesNotMake) {
    EXPECT_EQ(generate("pairwise", all_reduce_over(4, 4)).status().code(),
              StatusCode::kUnsupported);
    EXPECT_EQ(generate_program(*built_in("ring", CollectiveKind::kAllReduce).value(),
                               all_reduce_over(4, 4), 4)
                  .status()
                  .code(),
              StatusCode::kInvalidArgument);
}

TEST(GenerateTest, MakesOneRankOfManyAlone) {
    const auto program =
        generate_program(*built_in("double_binary_tree", CollectiveKind::kAllReduce).value(),
                         all_reduce_over(65536, 2), 77);
    ASSERT_TRUE(program.is_ok());
    EXPECT_LE(program.value().lanes.size(), 4U);
}

TEST(GenerateTest, ProgramsAreThoseOfTheSchedule) {
    for (const SourcePtr& source : testing::all_sources()) {
        const Shape shape = testing::shape_of(source, 6, 0, 2);
        const Schedule schedule = generate(*source, shape).value();
        for (Rank rank = 0; rank < shape.ranks; ++rank) {
            EXPECT_EQ(generate_program(*source, shape, rank).value(),
                      schedule.programs[static_cast<std::size_t>(rank)])
                << testing::name_of(source);
        }
    }
}

TEST(GenerateTest, AtLeastTheStatedSlotsAreNeeded) {
    for (const SourcePtr& source : testing::all_sources()) {
        const int slots = source->slots;
        if (slots == 1) continue;
        Schedule schedule = generate(*source, testing::shape_of(source, 6, 0, 1)).value();
        schedule.shape.slots = slots - 1;
        const auto verdict = verify(schedule, Placement::kOutOfPlace);
        EXPECT_NE(verdict.status().message().find("deadlock"), std::string::npos)
            << testing::name_of(source);
    }
}

}  // namespace
}  // namespace pccl::schedule
