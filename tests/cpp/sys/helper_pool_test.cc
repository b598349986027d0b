// SPDX-License-Identifier: Apache-2.0

// Helper threads take part in a job, and none is still at work when its run() returns.
#include "csrc/sys/cpu/helper_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/fakes/deadlines.h"

namespace pccl::sys {
namespace {

/// Waits until `count` is reached.
bool reaches(const std::atomic<int>& value, int count) {
    const Deadline deadline = fakes::test_deadline();
    while (value.load() < count && !deadline.passed()) std::this_thread::yield();
    return value.load() >= count;
}

TEST(HelperPool, HelpersWorkBesideTheCallerUnderTheirOwnNumbers) {
    HelperPool pool;
    std::atomic<int> begun{0};
    std::vector<std::atomic<int>> calls(3);
    pool.run(2, usable_cores(), [&](int worker) {
        ++calls.at(static_cast<std::size_t>(worker));
        ++begun;
        EXPECT_TRUE(reaches(begun, 3));
    });
    for (const auto& each : calls) EXPECT_EQ(each.load(), 1);
}

TEST(HelperPool, WithoutHelpersTheCallerWorksAlone) {
    HelperPool pool;
    std::atomic<int> calls{0};
    const auto self = std::this_thread::get_id();
    pool.run(0, usable_cores(), [&](int worker) {
        ++calls;
        EXPECT_EQ(worker, 0);
        EXPECT_EQ(std::this_thread::get_id(), self);
    });
    EXPECT_EQ(calls, 1);
}

TEST(HelperPool, NoHelperIsAtWorkAfterTheRun) {
    HelperPool pool;
    for (int round = 0; round < 2000; ++round) {
        std::atomic<int> inside{0};
        pool.run(3, usable_cores(), [&](int) {
            ++inside;
            --inside;
        });
        ASSERT_EQ(inside, 0);
    }
}

TEST(HelperPool, ThreadsOfTheProcessShareTheHelpers) {
    HelperPool pool;
    std::atomic<int> calls{0};
    {
        std::vector<std::jthread> callers;
        for (int caller = 0; caller < 4; ++caller)
            callers.emplace_back([&] {
                for (int round = 0; round < 300; ++round)
                    pool.run(HelperPool::kMost, usable_cores(), [&](int) { ++calls; });
            });
    }
    EXPECT_GE(calls, 1200);
}

TEST(HelperPool, AChildOfForkWorksAlone) {
    HelperPool pool;
    std::atomic<int> begun{0};
    pool.run(1, usable_cores(), [&](int) {
        ++begun;
        EXPECT_TRUE(reaches(begun, 2));
    });
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        int calls = 0;
        pool.run(1, usable_cores(), [&](int) { ++calls; });
        ::_exit(calls);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 1);
}

}  // namespace
}  // namespace pccl::sys
