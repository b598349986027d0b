// SPDX-License-Identifier: Apache-2.0

// The number of helpers follows the times of simulated machines.
#include "csrc/sys/cpu/helper_count.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "csrc/base/ids.h"

namespace pccl::sys {
namespace {

constexpr std::size_t kJob = 8 * kMiB;

/// Returns how long a job takes relative to one thread's time.
using Machine = std::function<double(int helpers)>;

Machine with_cores(int cores) {
    return [cores](int helpers) { return 1.0 / std::min(helpers + 1, cores); };
}

/// Runs jobs, and returns the sum of their times.
double run(HelperCount& count, int jobs, const Machine& machine, std::size_t bytes = kJob) {
    double sum = 0;
    for (int job = 0; job < jobs; ++job) {
        const double taken = machine(count.next(bytes));
        count.record(bytes, std::chrono::duration_cast<Duration>(
                                std::chrono::duration<double>(1e-3 * taken)));
        sum += taken;
    }
    return sum;
}

TEST(HelperCount, AllHelpFromTheFirstJobOn) {
    HelperCount count(15, "jobs");
    EXPECT_EQ(count.next(kJob), 15);
    run(count, 200, with_cores(16));
    EXPECT_EQ(count.next(kJob), 15) << "fewer are slower";
}

TEST(HelperCount, HelpersThatGainNothingAreGivenUp) {
    HelperCount count(15, "jobs");
    run(count, 3 * HelperCount::kPeriod + 4, with_cores(4));
    EXPECT_EQ(count.next(kJob), 3);
}

TEST(HelperCount, NoneHelpWhereTheyDisturb) {
    HelperCount count(15, "jobs");
    const Machine machine = [](int helpers) { return 1.0 + 0.03 * helpers; };
    run(count, HelperCount::kPeriod, machine);
    // Of each period, two jobs take 1.45 times as long.
    EXPECT_LT(run(count, 100 * HelperCount::kPeriod, machine), 1.03 * 100 * HelperCount::kPeriod);
}

TEST(HelperCount, AMachineThatGetsBusyGetsItsCoresBack) {
    HelperCount count(7, "jobs");
    run(count, 60, with_cores(8));
    ASSERT_EQ(count.next(kJob), 7);
    const Machine busy = [](int helpers) { return 1.0 + 0.1 * helpers; };
    run(count, 4 * HelperCount::kLatest + 8, busy);
    EXPECT_EQ(count.next(kJob), 0);
    run(count, HelperCount::kPeriod, with_cores(8));
    EXPECT_EQ(count.next(kJob), 7) << "and idle again";
}

/// Runs jobs of two ranks that both take as long as the slower one.
void run_together(HelperCount& first, HelperCount& second, int jobs, const Machine& machine) {
    for (int job = 0; job < jobs; ++job) {
        const double taken = std::max(machine(first.next(kJob)), machine(second.next(kJob)));
        const auto duration =
            std::chrono::duration_cast<Duration>(std::chrono::duration<double>(1e-3 * taken));
        first.record(kJob, duration);
        second.record(kJob, duration);
    }
}

TEST(HelperCount, RanksThatWaitForEachOtherFindTheGainTogether) {
    HelperCount first(7, "jobs");
    HelperCount second(7, "jobs");
    run_together(first, second, 5 * HelperCount::kPeriod, with_cores(1));
    run(first, 3, with_cores(1), kJob / 2);  // of another size
    run_together(first, second, 2 * HelperCount::kPeriod, with_cores(8));
    EXPECT_EQ(first.next(kJob), 7);
    EXPECT_EQ(second.next(kJob), 7);
}

TEST(HelperCount, ARankThatWaitsForASlowerOneGivesItsHelpersUp) {
    HelperCount count(7, "jobs");
    run(count, 3 * HelperCount::kPeriod + 4, [](int) { return 1.0; });
    EXPECT_EQ(count.next(kJob), 0);
}

TEST(HelperCount, NeverMoreThanAllowed) {
    HelperCount count(5, "jobs");
    for (int job = 0; job < 300; ++job) {
        EXPECT_LE(count.next(kJob), 5);
        run(count, 1, with_cores(64));
    }
    EXPECT_EQ(count.next(kJob), 5);
    HelperCount none(0, "jobs");
    run(none, 100, with_cores(64));
    EXPECT_EQ(none.next(kJob), 0);
}

TEST(HelperCount, SizesAreJudgedApart) {
    HelperCount count(3, "jobs");
    const std::size_t small = HelperCount::kFewestBytes;
    for (int round = 0; round < 3 * HelperCount::kPeriod + 4; ++round) {
        run(count, 1, with_cores(1), small);
        run(count, 1, with_cores(4), 64 * kMiB);
    }
    EXPECT_EQ(count.next(64 * kMiB), 3);
    EXPECT_EQ(count.next(small), 0);
    EXPECT_EQ(count.next(small - 1), 0);
}

}  // namespace
}  // namespace pccl::sys
