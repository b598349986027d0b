// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/fork.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include "tests/fakes/forked_child.h"

namespace pccl {
namespace {

using fakes::ForkedChild;

constexpr int kForks = 100;

TEST(ForkMarkTest, DistinguishesChildrenFromTheirParent) {
    const ForkMark mark;
    EXPECT_FALSE(mark.is_child());
    ForkedChild child([&] {
        const ForkMark own;
        ForkedChild grandchild([&] { return mark.is_child() && own.is_child() ? 0 : 1; });
        return mark.is_child() && !own.is_child() ? grandchild.join() : 1;
    });
    EXPECT_EQ(child.join(), 0);
    EXPECT_FALSE(mark.is_child());
}

struct Noted {
    explicit Noted(int& deleted) : deleted_(deleted) {}
    ~Noted() { ++deleted_; }
    Noted(const Noted&) = delete;
    Noted& operator=(const Noted&) = delete;

   private:
    int& deleted_;
};

TEST(LeaveToParentTest, OnlyTheProcessThatMadeItDeletes) {
    int deleted = 0;
    std::shared_ptr<Noted> noted(new Noted(deleted), LeaveToParent());
    ForkedChild child([&] {
        noted.reset();
        std::unique_ptr<Noted, LeaveToParent> own(new Noted(deleted));
        own.reset();
        return deleted == 1 ? 0 : 1;
    });
    EXPECT_EQ(child.join(), 0);
    noted.reset();
    EXPECT_EQ(deleted, 1);
}

TEST(HoldWhileForkingTest, AChildFindsTheMutexFreeAndWholeWhatItGuards) {
    static std::mutex mutex;
    static int here = 0;
    static int there = 0;  // as `here`, but while somebody holds the mutex
    hold_while_forking(mutex);
    std::atomic<bool> stop{false};
    std::thread busy([&] {
        while (!stop) {
            const std::lock_guard lock(mutex);
            ++here;
            std::this_thread::yield();
            ++there;
        }
    });
    for (int i = 0; i < kForks; ++i) {
        ForkedChild child([] {
            const std::lock_guard lock(mutex);
            return here == there ? 0 : 1;
        });
        EXPECT_EQ(child.join(), 0);
        if (HasFailure()) break;
    }
    stop = true;
    busy.join();
}

}  // namespace
}  // namespace pccl
