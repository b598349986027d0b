// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/connection/handoff_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

namespace pccl::p2p {
namespace {

constexpr Duration kFarLonger = std::chrono::minutes(10);  // than a test may take

std::unique_ptr<transport::Waiter> make_waiter() {
    return std::move(transport::Waiter::create().value());
}

/// Sleeps without ever looking at the clock: a lost wake-up hangs, and the test's time limit tells.
TEST(HandoffLockTest, WhoFindsItHeldIsWokenWhenItIsReleased) {
    const auto waiter = make_waiter();
    HandoffLock lock(*waiter);
    for (int round = 0; round < 50; ++round) {
        std::unique_lock held(lock);
        std::atomic<bool> has_missed{false};
        std::thread other([&] {
            const auto ticket = waiter->prepare();
            EXPECT_FALSE(lock.try_lock());
            has_missed = true;
            waiter->sleep(ticket, kFarLonger);
        });
        while (!has_missed) std::this_thread::yield();
        held.unlock();
        other.join();
    }
}

TEST(HandoffLockTest, NobodyIsWokenWhomItWasNotHeldFrom) {
    const auto waiter = make_waiter();
    HandoffLock lock(*waiter);
    const auto ticket = waiter->prepare();
    for (int round = 0; round < 3; ++round) {
        ASSERT_TRUE(lock.try_lock());
        lock.unlock();
    }
    EXPECT_EQ(waiter->prepare(), ticket);
    waiter->cancel();
    waiter->cancel();
}

}  // namespace
}  // namespace pccl::p2p
