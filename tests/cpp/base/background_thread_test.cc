// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/threads/background_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <string>

namespace pccl {
namespace {

TEST(BackgroundThreadTest, TheDestructorWaitsForTheBody) {
    std::atomic<bool> ran{false};
    {
        BackgroundThread thread("joined", [&] { ran = true; });
    }
    EXPECT_TRUE(ran);
}

TEST(BackgroundThreadTest, TakesNoSignals) {
    sigset_t mask;
    sigemptyset(&mask);
    {
        BackgroundThread thread("masked", [&] { ::pthread_sigmask(SIG_SETMASK, nullptr, &mask); });
    }
    EXPECT_EQ(sigismember(&mask, SIGTERM), 1);
    EXPECT_EQ(sigismember(&mask, SIGINT), 1);
    sigset_t mine;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mine);
    EXPECT_EQ(sigismember(&mine, SIGTERM), 0);
}

TEST(BackgroundThreadTest, AForkedChildMayDestroyItsCopy) {
    std::atomic<bool> stop{false};
    auto thread = std::make_unique<BackgroundThread>("forked", [&] {
        while (!stop) ::sched_yield();
    });
    const pid_t child = ::fork();
    if (child == 0) {
        thread.reset();
        ::_exit(7);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 7);
    stop = true;
}

TEST(BackgroundThreadTest, AReleasedThreadIsNotWaitedFor) {
    struct Shared {
        std::atomic<bool> stop{false};
        std::atomic<bool> stopped{false};
    };
    const auto shared = std::make_shared<Shared>();
    auto thread = std::make_unique<BackgroundThread>("released", [shared] {
        while (!shared->stop) ::sched_yield();
        shared->stopped = true;
    });
    thread->release();
    thread.reset();
    EXPECT_FALSE(shared->stopped);
    shared->stop = true;
    while (!shared->stopped) ::sched_yield();
}

}  // namespace
}  // namespace pccl
