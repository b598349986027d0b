// SPDX-License-Identifier: Apache-2.0

// The verifier finds every small fault. The schedule_mutants tool does the same at length.
#include "tests/cpp/schedule/mutation.h"

#include <gtest/gtest.h>

#include "tests/cpp/schedule/catalogue.h"
#include "tests/cpp/schedule/mutation_report.h"
#include "tests/cpp/schedule/samples.h"

namespace pccl::schedule::testing {
namespace {

void expect_no_survivors(const Report& report) {
    for (const std::string& survivor : report.survivors) ADD_FAILURE() << survivor;
}

class MutationTest : public ::testing::TestWithParam<SourcePtr> {
   protected:
    /// Of all together, where none was left out.
    static void TearDownTestSuite() {
        if (sources == all_sources().size()) {
            EXPECT_GE(total.of(Fate::kKilled), 2000);
        }
    }
    static inline Tally total;
    static inline std::size_t sources = 0;
};

TEST_P(MutationTest, EveryFaultIsFound) {
    Report report;
    for (const int ranks : {2, 3, 5}) {
        const Rank root = roots(GetParam(), ranks) - 1;
        const Shape shape = shape_of(GetParam(), ranks, root, 2);
        mutate_and_verify(generate(*GetParam(), shape).value(), report);
    }
    expect_no_survivors(report);
    EXPECT_GT(report.total().of(Fate::kKilled), 0);
    total += report.total();
    ++sources;
}

INSTANTIATE_TEST_SUITE_P(All, MutationTest, ::testing::ValuesIn(all_sources()),
                         [](const auto& source) { return name_of(source.param); });

TEST(MutationOfDependenciesTest, EveryOneIsMissed) {
    Report report;
    mutate_and_verify(two_lane_ring_all_reduce(4), report);
    expect_no_survivors(report);
    const auto kind = static_cast<std::size_t>(MutationKind::kMissingDependency);
    EXPECT_GT(report.tallies[kind].of(Fate::kKilled), 0);
    EXPECT_EQ(report.tallies[kind].of(Fate::kEquivalent), 0);
}

TEST(MutationOfDependenciesTest, AnImpliedOneIsEquivalent) {
    Schedule schedule = two_lane_ring_all_reduce(3);
    // The lane's order implies it: an earlier step waits for the same.
    Lane& sends = schedule.programs[0].lanes[1];
    sends[2].after.push_back(sends[1].after[0]);
    Report report;
    mutate_and_verify(schedule, report);
    expect_no_survivors(report);
    const auto kind = static_cast<std::size_t>(MutationKind::kMissingDependency);
    EXPECT_EQ(report.tallies[kind].of(Fate::kEquivalent), 2);  // in place and out of place
}

}  // namespace
}  // namespace pccl::schedule::testing
