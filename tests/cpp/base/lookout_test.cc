#include "csrc/base/lookout.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <vector>

namespace pccl {
namespace {

struct Flags {
    std::atomic<bool> is_over{false};
    std::atomic<int> told{0};

    [[nodiscard]] Lookout::Watched watched() {
        return {.is_over = [this] { return is_over.load(); }, .tell = [this] { ++told; }};
    }
    void await() const {
        while (told == 0) ::sched_yield();
    }
};

TEST(LookoutTest, TellsOnceOfWhatIsOver) {
    Flags flags;
    Lookout lookout({.name = "lookout"});
    lookout.watch(flags.watched());
    EXPECT_EQ(flags.told, 0);
    flags.is_over = true;
    flags.await();
    Flags another;
    another.is_over = true;
    lookout.watch(another.watched());
    another.await();
    EXPECT_EQ(flags.told, 1);
}

TEST(LookoutTest, WhatIsNotOverHoldsUpNothing) {
    Flags stuck;
    Flags quick;
    Lookout lookout({.name = "lookout"});
    lookout.watch(stuck.watched());
    lookout.watch(quick.watched());
    quick.is_over = true;
    quick.await();
    EXPECT_EQ(stuck.told, 0);
}

TEST(LookoutTest, TheDestructorTellsOfAllInTheOrderOfCalls) {
    std::vector<int> told;
    {
        Lookout lookout({.name = "lookout"});
        for (int i = 0; i < 100; ++i)
            lookout.watch(
                {.is_over = [] { return false; }, .tell = [&told, i] { told.push_back(i); }});
    }
    ASSERT_EQ(told.size(), 100U);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(told[static_cast<std::size_t>(i)], i);
}

TEST(LookoutTest, PreparesItsThreadFirst) {
    std::atomic<bool> is_prepared{false};
    std::atomic<bool> was_prepared{false};
    {
        Lookout lookout({.name = "lookout", .prepare = [&] { is_prepared = true; }});
        lookout.watch(
            {.is_over = [] { return true; }, .tell = [&] { was_prepared = is_prepared.load(); }});
    }
    EXPECT_TRUE(was_prepared);
}

}  // namespace
}  // namespace pccl
