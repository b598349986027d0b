// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/threads/poller.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <vector>

namespace pccl {
namespace {

struct Flags {
    std::atomic<bool> is_over{false};
    std::atomic<int> reported{0};

    [[nodiscard]] Poller::Watched watched() {
        return {.is_over = [this] { return is_over.load(); }, .notify = [this] { ++reported; }};
    }
    void await() const {
        while (reported == 0) ::sched_yield();
    }
};

TEST(PollerTest, ReportsAnEndOnce) {
    Flags flags;
    Poller poller({.name = "poller"});
    poller.watch(flags.watched());
    EXPECT_EQ(flags.reported, 0);
    flags.is_over = true;
    flags.await();
    Flags another;
    another.is_over = true;
    poller.watch(another.watched());
    another.await();
    EXPECT_EQ(flags.reported, 1);
}

TEST(PollerTest, WhatIsNotOverHoldsUpNothing) {
    Flags stuck;
    Flags quick;
    Poller poller({.name = "poller"});
    poller.watch(stuck.watched());
    poller.watch(quick.watched());
    quick.is_over = true;
    quick.await();
    EXPECT_EQ(stuck.reported, 0);
}

TEST(PollerTest, TheDestructorNotifiesOfAllInTheOrderOfCalls) {
    std::vector<int> reported;
    {
        Poller poller({.name = "poller"});
        for (int i = 0; i < 100; ++i)
            poller.watch({.is_over = [] { return false; },
                          .notify = [&reported, i] { reported.push_back(i); }});
    }
    ASSERT_EQ(reported.size(), 100U);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(reported[static_cast<std::size_t>(i)], i);
}

TEST(PollerTest, PreparesItsThreadFirst) {
    std::atomic<bool> is_prepared{false};
    std::atomic<bool> was_prepared{false};
    {
        Poller poller({.name = "poller", .prepare = [&] { is_prepared = true; }});
        poller.watch(
            {.is_over = [] { return true; }, .notify = [&] { was_prepared = is_prepared.load(); }});
    }
    EXPECT_TRUE(was_prepared);
}

}  // namespace
}  // namespace pccl
