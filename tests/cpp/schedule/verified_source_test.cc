// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/verifier/verified_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/cpp/schedule/catalogue.h"
#include "tests/cpp/schedule/star.h"

namespace pccl::schedule {
namespace {

using ::testing::HasSubstr;

TEST(VerifiedSourceTest, MakesTheProgramsThatItWasGiven) {
    const Schedule given = testing::star(4);
    const SourcePtr source = source_of(given).value();
    EXPECT_EQ(source->name, "star");
    EXPECT_EQ(generate(*source, least_shape(*source, 4)).value(), given);
}

TEST(VerifiedSourceTest, CountsWhatItCosts) {
    for (const SourcePtr& known : testing::all_sources()) {
        const Shape shape = testing::shape_of(known, 6, 0, 1);
        const SourcePtr source = source_of(generate(*known, shape).value()).value();
        const Cost counted = source->cost(shape, 1e6);
        const Cost stated = known->cost(shape, 1e6);
        SCOPED_TRACE(testing::name_of(known));
        EXPECT_EQ(counted.rounds, stated.rounds);
        EXPECT_EQ(counted.messages, stated.messages);
        EXPECT_NEAR(counted.bytes_sent, stated.bytes_sent, 1e-6);
        EXPECT_NEAR(counted.bytes_reduced, stated.bytes_reduced, 1e-6);
        EXPECT_LE(source->longest_message(shape), known->longest_message(shape));
        EXPECT_EQ(source->swaps_operands, known->swaps_operands);
    }
}

TEST(VerifiedSourceTest, IsForOneShape) {
    const SourcePtr source = source_of(testing::star(3)).value();
    const auto refusal = [&](const Shape& shape) {
        const Status status = check_shape(*source, shape);
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
        return std::string(status.message());
    };
    EXPECT_EQ(refusal({.ranks = 4}), "star all_reduce is for 3 ranks, not 4");
    EXPECT_EQ(refusal({.ranks = 3, .chunks = 2}), "star all_reduce is for 1 chunks, not 2");
    EXPECT_TRUE(check_shape(*source, {.ranks = 3, .slots = 8}).is_ok());
}

TEST(VerifiedSourceTest, RefusesWhatIsWrong) {
    Schedule wrong = testing::star(3);
    wrong.programs[0].lanes[0].pop_back();
    const Status status = source_of(wrong).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("rank 2"));
}

}  // namespace
}  // namespace pccl::schedule
