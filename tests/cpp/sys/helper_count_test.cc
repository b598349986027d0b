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

TEST(HelperCount, HelpersAreAddedWhileTheyGain) {
    HelperCount count(15, "jobs");
    run(count, 40, with_cores(16));
    EXPECT_EQ(count.next(kJob), 15);
}

TEST(HelperCount, HelpersThatGainNothingAreGivenUp) {
    HelperCount count(15, "jobs");
    run(count, 200, with_cores(4));
    EXPECT_EQ(count.next(kJob), 3);
}

TEST(HelperCount, NoneHelpWhereTheyDisturb) {
    HelperCount count(15, "jobs");
    const Machine machine = [](int helpers) { return 1.0 + 0.2 * helpers; };
    const double taken = run(count, 1000, machine);
    EXPECT_EQ(count.next(kJob), 0);
    // Trials cost two jobs of 1.2 instead of 1 in 66.
    EXPECT_LT(taken, 1015);
}

TEST(HelperCount, AMachineThatGetsBusyGetsItsCoresBack) {
    HelperCount count(7, "jobs");
    run(count, 60, with_cores(8));
    ASSERT_EQ(count.next(kJob), 7);
    const Machine busy = [](int helpers) { return 1.0 + 0.1 * helpers; };
    run(count, 4 * HelperCount::kLatest, busy);
    EXPECT_EQ(count.next(kJob), 0);
    run(count, 8 * HelperCount::kLatest, with_cores(8));
    EXPECT_EQ(count.next(kJob), 7) << "and idle again";
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
    for (int round = 0; round < 50; ++round) {
        run(count, 1, with_cores(1), small);
        run(count, 1, with_cores(4), 64 * kMiB);
    }
    EXPECT_EQ(count.next(64 * kMiB), 3);
    EXPECT_EQ(count.next(HelperCount::kFewestBytes - 1), 0);
    EXPECT_LE(count.next(small), 1);
}

/// A job whose work more threads speed up, and that takes as long as another process needs.
void run_beside(HelperCount& count, int jobs, const Machine& machine, double other) {
    for (int job = 0; job < jobs; ++job) {
        const double work = machine(count.next(kJob));
        const auto ms = [](double value) {
            return std::chrono::duration_cast<Duration>(
                std::chrono::duration<double, std::milli>(value));
        };
        count.record(kJob, ms(work), ms(std::max(other - work, 0.0)));
    }
}

TEST(HelperCount, AnotherProcessThatIsAsSlowHidesNoGain) {
    HelperCount count(7, "jobs");
    run_beside(count, 40, with_cores(8), 1);
    EXPECT_GE(count.next(kJob), 1) << "the other one may then gain, too";
}

TEST(HelperCount, NobodyHelpsWithWaits) {
    HelperCount count(7, "jobs");
    run_beside(count, 100, with_cores(8), 20);
    EXPECT_EQ(count.next(kJob), 0);
    run(count, 100, with_cores(8));
    ASSERT_EQ(count.next(kJob), 7);
    run_beside(count, 300, with_cores(8), 20);
    EXPECT_EQ(count.next(kJob), 0);
}

}  // namespace
}  // namespace pccl::sys
