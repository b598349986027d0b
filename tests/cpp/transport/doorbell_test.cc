#include "csrc/transport/doorbell.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace pccl::transport {
namespace {

constexpr Duration kFarLonger = std::chrono::minutes(10);  // than a test may take

std::unique_ptr<Waiter> make_waiter() { return std::move(Waiter::create().value()); }

/// Sleeps without ever looking at the clock: a lost wake-up hangs, and the test's time limit tells.
void sleep_until(Waiter& waiter, const std::atomic<bool>& news) {
    while (!news) {
        const auto ticket = waiter.prepare();
        if (news)
            waiter.cancel();
        else
            waiter.sleep(ticket, kFarLonger);
    }
}

TEST(WaiterTest, WakeEndsTheSleepOfAllThreads) {
    for (const bool with_sockets : {false, true}) {
        const auto waiter = make_waiter();
        const UniqueFd watched(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        ASSERT_TRUE(!with_sockets || waiter->watch(watched.get()).is_ok());
        for (int round = 0; round < 50; ++round) {
            std::atomic<bool> news{false};
            std::vector<std::thread> sleepers;
            for (int i = 0; i < 3; ++i) sleepers.emplace_back([&] { sleep_until(*waiter, news); });
            news = true;
            waiter->wake();
            for (std::thread& sleeper : sleepers) sleeper.join();
        }
    }
}

TEST(WaiterTest, AWatchedDescriptorEndsSleeps) {
    const auto waiter = make_waiter();
    const UniqueFd watched(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    ASSERT_TRUE(waiter->watch(watched.get()).is_ok());
    for (int round = 0; round < 50; ++round) {
        std::atomic<bool> news{false};
        std::thread sleeper([&] { sleep_until(*waiter, news); });
        news = true;
        const std::uint64_t one = 1;
        ASSERT_EQ(::write(watched.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
        sleeper.join();
    }
}

TEST(WaiterTest, ASleepEndsByItself) {
    const auto waiter = make_waiter();
    waiter->sleep(waiter->prepare(), std::chrono::milliseconds(2));
    const UniqueFd watched(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    ASSERT_TRUE(waiter->watch(watched.get()).is_ok());
    waiter->sleep(waiter->prepare(), std::chrono::milliseconds(2));
}

TEST(RemoteDoorbellTest, RingsTheProcessThatOwnsThePage) {
    const auto waiter = make_waiter();
    const auto bell = RemoteDoorbell::map(waiter->memfd());
    ASSERT_TRUE(bell.is_ok()) << bell.status().to_string();
    for (int round = 0; round < 50; ++round) {
        std::atomic<bool> news{false};
        std::thread sleeper([&] { sleep_until(*waiter, news); });
        news = true;
        EXPECT_FALSE((*bell)->ring()) << "nobody sleeps in epoll";
        sleeper.join();
    }
}

TEST(RemoteDoorbellTest, RefusesWhatIsNoMemory) { EXPECT_FALSE(RemoteDoorbell::map(-1).is_ok()); }

TEST(BackoffTest, ComesToSleepAndStartsOver) {
    const auto waiter = make_waiter();
    Backoff backoff(*waiter);
    for (int again = 0; again < 2; ++again) {
        int pauses = 0;
        do {
            backoff.pause();
            ++pauses;
        } while (!backoff.slept() && pauses < 1'000'000);
        EXPECT_TRUE(backoff.slept());
        EXPECT_GT(pauses, 10);
        backoff.reset();
    }
}

}  // namespace
}  // namespace pccl::transport
