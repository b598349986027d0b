// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/cpu/cpu_times.h"

#include <gtest/gtest.h>

#include <ctime>

namespace pccl::sys {
namespace {

Duration thread_time() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

TEST(CpuTimes, GrowWithTheTimeThatAThreadRuns) {
    const CpuTimes before = cpu_times();
    if (before.ran == Duration::zero()) GTEST_SKIP() << "the kernel has no schedstat";
    const Duration begin = thread_time();
    while (thread_time() < begin + std::chrono::milliseconds(20)) {
    }
    // The kernel brings a running thread's time up to date at its ticks.
    EXPECT_GE(cpu_times().ran - before.ran, std::chrono::milliseconds(5));
    EXPECT_GE(cpu_times().queued, before.queued);
}

}  // namespace
}  // namespace pccl::sys
