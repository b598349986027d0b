// SPDX-License-Identifier: Apache-2.0

// What is measured is plausible, on any machine and under any load; how long things take is not
// asserted.
#include "csrc/costs/measure.h"

#include <gtest/gtest.h>

#include "csrc/sys/host.h"

namespace pccl::costs {
namespace {

// Under load not all fits into the usual time.
constexpr Duration kBudget = std::chrono::seconds(20);

TEST(Measure, FindsFiguresThatCanBe) {
    const MachineCosts costs = measure(kBudget);
    EXPECT_TRUE(costs.is_measured());
    EXPECT_GT(costs.origin.took, 0);
    for (const NamedFigure& named : named_figures())
        EXPECT_GT((costs.*named.figure).seconds, 0) << named.name;
    for (const NamedByteFigures& named : named_byte_figures())
        for (const Figure& figure : costs.*named.figures) {
            EXPECT_GT(figure.seconds, 1e-12) << named.name;  // a petabyte a second is none
            EXPECT_LT(figure.seconds, 1e-6) << named.name;
        }
    // A copy within the first level may not take many times what one from memory does.
    EXPECT_LT(at(costs.copy, Level::kFirst), 4 * at(costs.copy, Level::kMemory));
    EXPECT_EQ(MachineCosts::parse(costs.text()).value().text(), costs.text());
}

TEST(Measure, WithoutTimeForASecondCoreIsNotOfAQuietMachine) {
    if (sys::allowed_cores().count() == 1) GTEST_SKIP() << "there is no second core";
    const MachineCosts costs = measure(Duration::zero());
    EXPECT_FALSE(costs.core_round_trip.is_measured);
    EXPECT_FALSE(costs.origin.is_quiet);
}

TEST(Measure, LeavesThisThreadWhereItMayRun) {
    const sys::CoreSet before = sys::usable_cores();
    static_cast<void>(measure());
    EXPECT_EQ(sys::usable_cores(), before);
}

TEST(Measure, WithOneCoreMeasuresWhatOneCoreDoes) {
    const sys::CoreSet before = sys::usable_cores();
    const sys::CoreSet allowed = sys::allowed_cores();
    EXPECT_EQ(sys::usable_cores(), before);
    EXPECT_EQ(allowed & before, before);
    const MachineCosts costs = measure(kBudget);
    EXPECT_TRUE(costs.copy[0].is_measured);
    EXPECT_LE(costs.core_round_trip.is_measured, allowed.count() > 1);
}

}  // namespace
}  // namespace pccl::costs
