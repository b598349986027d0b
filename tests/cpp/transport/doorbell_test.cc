// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/doorbell.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "csrc/sys/socket/descriptors.h"
#include "csrc/transport/control/unix_socket.h"

namespace pccl::transport {
namespace {

constexpr Duration kFarLonger = std::chrono::minutes(10);  // than a test may take
constexpr Duration kTimeout = std::chrono::seconds(20);

std::vector<UniqueFd> duplicates(const DoorbellHandles& handles) {
    std::vector<UniqueFd> copies;
    for (const int handle : handles) copies.emplace_back(::dup(handle));
    return copies;
}

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
    auto handles = duplicates(waiter->handles());
    const auto bell = RemoteDoorbell::adopt(handles);
    ASSERT_TRUE(bell.is_ok()) << bell.status().to_string();
    for (int round = 0; round < 50; ++round) {
        std::atomic<bool> news{false};
        std::thread sleeper([&] { sleep_until(*waiter, news); });
        news = true;
        (*bell)->ring();
        sleeper.join();
    }
}

TEST(RemoteDoorbellTest, RingsThoseWhoSleepInEpoll) {
    const auto waiter = make_waiter();
    const UniqueFd watched(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    ASSERT_TRUE(waiter->watch(watched.get()).is_ok());
    auto handles = duplicates(waiter->handles());
    const auto bell = RemoteDoorbell::adopt(handles);
    ASSERT_TRUE(bell.is_ok()) << bell.status().to_string();
    std::atomic<bool> news{false};
    std::thread sleeper([&] { sleep_until(*waiter, news); });
    news = true;
    (*bell)->ring();
    sleeper.join();
}

TEST(RemoteDoorbellTest, SeesTheEndOfTheProcess) {
    std::array<int, 2> handover{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, handover.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        const auto waiter = Waiter::create();
        const bool sent =
            waiter.is_ok() &&
            sys::send_descriptors(handover[1], std::byte{'D'}, (*waiter)->handles()).is_ok();
        char go = 0;
        ::_exit(sent && ::read(handover[1], &go, 1) == 1 ? 0 : 1);
    }
    const UniqueFd here(handover[0]);
    const UniqueFd there(handover[1]);
    auto handles = transport::receive_fds(here.get(), std::byte{'D'}, Deadline::after(kTimeout));
    ASSERT_TRUE(handles.is_ok()) << handles.status().to_string();
    const auto bell = RemoteDoorbell::adopt(*handles);
    ASSERT_TRUE(bell.is_ok()) << bell.status().to_string();
    EXPECT_FALSE((*bell)->owner_has_exited());
    ASSERT_EQ(::write(here.get(), "g", 1), 1);
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE((*bell)->owner_has_exited());
}

TEST(RemoteDoorbellTest, RefusesWhatIsNoDoorbell) {
    std::array<UniqueFd, 3> closed;
    EXPECT_FALSE(RemoteDoorbell::adopt(closed).is_ok());
    EXPECT_FALSE(RemoteDoorbell::adopt(std::span(closed).first(2)).is_ok());
}

TEST(CrowdTest, CountsCoresForEachProcess) {
    EXPECT_TRUE((Crowd{1, 2}).has_room());
    EXPECT_TRUE((Crowd{32, 64}).has_room());
    EXPECT_FALSE((Crowd{33, 64}).has_room());
    EXPECT_FALSE((Crowd{64, 64}).is_short_of_cores());
    EXPECT_TRUE((Crowd{65, 64}).is_short_of_cores());
    EXPECT_FALSE(Crowd().has_room()) << "nothing is known";
    EXPECT_FALSE(Crowd().is_short_of_cores());
    EXPECT_EQ((Crowd{64, 64}).most_on_core(), 1);
    EXPECT_EQ((Crowd{65, 64}).most_on_core(), 2);
}

TEST(CrowdTest, TheDensestGroupCounts) {
    const auto waiter = make_waiter();
    for (const Crowd& crowd : {Crowd{2, 8}, Crowd{9, 8}, Crowd{8, 8}}) waiter->share_cores(crowd);
    EXPECT_EQ(waiter->crowd(), (Crowd{9, 8}));
}

/// Pauses of one wait for nothing, until it sleeps.
int pauses_before_sleep(Backoff& backoff) {
    int pauses = 0;
    do {
        backoff.pause();
        ++pauses;
    } while (!backoff.slept() && pauses < 1'000'000);
    EXPECT_TRUE(backoff.slept());
    return pauses;
}
int pauses_before_sleep(Waiter& waiter) {
    Backoff backoff(waiter);
    return pauses_before_sleep(backoff);
}

TEST(BackoffTest, NobodySpinsWhereCoresAreShort) {
    const auto waiter = make_waiter();
    EXPECT_GE(pauses_before_sleep(*waiter), 200);
    waiter->share_cores({.processes = 3, .cores = 2});
    EXPECT_LT(pauses_before_sleep(*waiter), 200);
}

TEST(BackoffTest, ManySpinLessThanTwo) {
    const auto pair = make_waiter();
    pair->share_cores({.processes = 2, .cores = 2});
    EXPECT_GE(pauses_before_sleep(*pair), 200);
    const auto many = make_waiter();
    many->share_cores({.processes = 64, .cores = 64});
    EXPECT_LT(pauses_before_sleep(*many), 200);
}

TEST(WaiterTest, WaitsAreLongerWhereWakesAreDear) {
    const auto waiter = make_waiter();
    waiter->wakes_take(std::chrono::microseconds(7));
    EXPECT_EQ(waiter->yield_limit(), std::chrono::microseconds(210));
    waiter->wakes_take(std::chrono::nanoseconds(1));
    EXPECT_EQ(waiter->yield_limit(), std::chrono::microseconds(50));
    waiter->wakes_take(std::chrono::seconds(1));
    EXPECT_EQ(waiter->yield_limit(), std::chrono::milliseconds(1));
}

TEST(BackoffTest, ComesToSleepAndStartsOver) {
    const auto waiter = make_waiter();
    Backoff backoff(*waiter);
    for (int again = 0; again < 2; ++again) {
        EXPECT_GT(pauses_before_sleep(backoff), 10);
        backoff.reset();
    }
}

}  // namespace
}  // namespace pccl::transport
