// SPDX-License-Identifier: Apache-2.0

// Peers reach memory of GPUs that was registered, on a driver in host memory; ranks are threads.
#include "csrc/transport/nvlink/registration_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <thread>

#include "csrc/sys/socket/socket.h"
#include "tests/cpp/transport/nvlink_members.h"
#include "tests/fakes/deadlines.h"

namespace pccl::transport::nvlink {
namespace {

using fakes::test_deadline;

Result<std::unique_ptr<RegistrationCache>> cache_of(Member& member,
                                                    std::function<void()> on_lost = {}) {
    return RegistrationCache::create(
        {.driver = member.driver, .sockets = member.sockets, .on_lost = std::move(on_lost)});
}

TEST(RegistrationCacheTest, PeersReachWhatWasFound) {
    run(3, [](Member& member) {
        auto cache = cache_of(member);
        ASSERT_TRUE(cache.is_ok());
        const auto base = member.driver.allocate(4096);
        word_at(base + 512) = static_cast<std::uint64_t>(member.rank) + 1;
        for (const std::size_t offset : {512, 0, 512}) {
            const auto found = (*cache)->find(base + offset, 64, test_deadline());
            ASSERT_TRUE(found.is_ok()) << found.status().to_string();
            EXPECT_EQ(found->at(member.rank, base + offset), base + offset);
            if (offset == 512) {
                for (Rank peer = 0; peer < 3; ++peer)
                    EXPECT_EQ(word_at(found->at(peer, base + offset)),
                              static_cast<std::uint64_t>(member.rank) + 1);
            }
        }
        EXPECT_EQ((*cache)->size(), 1U);
        member.together.arrive_and_wait();
        EXPECT_EQ(member.driver.opened_allocations(), 2);
        member.together.arrive_and_wait();
        cache->reset();
        EXPECT_EQ(member.driver.opened_allocations(), 0);
    });
}

TEST(RegistrationCacheTest, HasTheMappedMemoryOfItsPeers) {
    std::array<sys::cuda::DeviceAddress, 2> bases{};
    run(2, [&](Member& member) {
        auto cache = cache_of(member);
        ASSERT_TRUE(cache.is_ok());
        const auto base = member.driver.allocate(4096);
        bases.at(static_cast<std::size_t>(member.rank)) = base;
        ASSERT_TRUE((*cache)->find(base, 4096, test_deadline()).is_ok());
        member.together.arrive_and_wait();
        const auto peers = bases.at(static_cast<std::size_t>(1 - member.rank));
        EXPECT_TRUE((*cache)->has_mapped(peers, 4096));
        EXPECT_TRUE((*cache)->has_mapped(peers + 4095, 1));
        EXPECT_FALSE((*cache)->has_mapped(peers + 4095, 2));
        EXPECT_FALSE((*cache)->has_mapped(peers - 1, 1));
        EXPECT_FALSE((*cache)->has_mapped(base, 1)) << "its own is no peer's";
        member.together.arrive_and_wait();
    });
}

TEST(RegistrationCacheTest, AnAddressGivenOutAgainIsMappedAgain) {
    run(2, [](Member& member) {
        auto cache = cache_of(member);
        ASSERT_TRUE(cache.is_ok());
        const auto base = member.driver.allocate(4096);
        ASSERT_TRUE((*cache)->find(base, 4096, test_deadline()).is_ok());
        member.together.arrive_and_wait();
        EXPECT_EQ(member.driver.opened_allocations(), 1);
        member.together.arrive_and_wait();
        member.driver.forget(base);
        ASSERT_TRUE((*cache)->find(base, 4096, test_deadline()).is_ok());
        member.together.arrive_and_wait();
        EXPECT_EQ(member.driver.opened_allocations(), 2);
        member.together.arrive_and_wait();
    });
}

TEST(RegistrationCacheTest, WhatIsNoGpuMemoryOrTooShortIsRefused) {
    run(2, [](Member& member) {
        auto cache = cache_of(member);
        ASSERT_TRUE(cache.is_ok());
        const auto base = member.driver.allocate(4096);
        std::uint64_t here = 0;
        const auto host = std::bit_cast<sys::cuda::DeviceAddress>(&here);
        EXPECT_EQ((*cache)->find(host, 8, test_deadline()).status().code(),
                  StatusCode::kInvalidArgument);
        EXPECT_EQ((*cache)->find(base + 4000, 97, test_deadline()).status().code(),
                  StatusCode::kInvalidArgument);
        EXPECT_TRUE((*cache)->find(base + 4000, 96, test_deadline()).is_ok());
        member.together.arrive_and_wait();
    });
}

TEST(RegistrationCacheTest, AnAllocationThatAPeerCannotMapIsUnsupported) {
    run(2, [](Member& member) {
        if (member.rank == 1)
            member.driver.fail("open_allocation", Status::unsupported("no peer access"));
        auto cache = cache_of(member);
        ASSERT_TRUE(cache.is_ok());
        const auto base = member.driver.allocate(4096);
        const auto found = (*cache)->find(base, 64, test_deadline());
        EXPECT_EQ(found.status().code(),
                  member.rank == 0 ? StatusCode::kUnsupported : StatusCode::kOk);
        member.together.arrive_and_wait();
    });
}

TEST(RegistrationCacheTest, MemoryThatCannotBeSharedIsUnsupportedEveryTime) {
    run(2, [](Member& member) {
        auto cache = cache_of(member);
        ASSERT_TRUE(cache.is_ok());
        const auto base = member.driver.allocate(4096);
        member.driver.make_unshareable(base);
        for (int time = 0; time < 2; ++time)
            EXPECT_EQ((*cache)->find(base, 64, test_deadline()).status().code(),
                      StatusCode::kUnsupported);
        member.together.arrive_and_wait();
    });
}

TEST(RegistrationCacheTest, WhatWasAnnouncedIsMappedWithoutAnybodyWaiting) {
    run(2, [](Member& member) {
        auto cache = cache_of(member);
        ASSERT_TRUE(cache.is_ok());
        const auto base = member.driver.allocate(4096);
        ASSERT_TRUE((*cache)->announce(base + 100, test_deadline()).is_ok());
        ASSERT_TRUE((*cache)->announce(base, test_deadline()).is_ok());
        EXPECT_EQ((*cache)->size(), 1U);
        while (member.driver.opened_allocations() == 0) std::this_thread::yield();
        member.together.arrive_and_wait();
    });
}

/// How often a cache has told that a peer is gone.
class Losses {
   public:
    std::function<void()> counter() {
        return [this] {
            count_.fetch_add(1);
            count_.notify_all();
        };
    }
    void await_one() const { count_.wait(0); }
    [[nodiscard]] int count() const { return count_.load(); }

   private:
    std::atomic<int> count_{0};
};

TEST(RegistrationCacheTest, APeerThatLeavesIsNamed) {
    run(2, [](Member& member) {
        Losses losses;
        auto cache = cache_of(member, losses.counter());
        ASSERT_TRUE(cache.is_ok());
        if (member.rank == 1) {
            cache->reset();
            sys::shut_down(member.sockets.of(0));
            return;
        }
        losses.await_one();
        EXPECT_EQ((*cache)->health().code(), StatusCode::kPeerLost);
        EXPECT_EQ((*cache)->health().peer(), 1);
        const auto base = member.driver.allocate(4096);
        EXPECT_EQ((*cache)->find(base, 64, test_deadline()).status().code(), StatusCode::kPeerLost);
        EXPECT_EQ(losses.count(), 1);
    });
}

TEST(RegistrationCacheTest, ALeavingRankSendsItsReason) {
    run(3, [](Member& member) {
        Losses losses;
        auto cache = cache_of(member, losses.counter());
        ASSERT_TRUE(cache.is_ok());
        if (member.rank == 1) {
            (*cache)->leave(Status::timeout("rank 1 waited for rank 2", 2));
            (*cache)->leave(Status::aborted("later"));
        } else {
            losses.await_one();
        }
        const Status health = (*cache)->health();
        EXPECT_EQ(health.code(), member.rank == 2 ? StatusCode::kPeerLost : StatusCode::kTimeout);
        EXPECT_EQ(health.peer(), member.rank == 2 ? 1 : 2);
        EXPECT_THAT(health.message(), testing::EndsWith("rank 1 waited for rank 2"));
        member.together.arrive_and_wait();
        EXPECT_EQ(losses.count(), member.rank == 1 ? 0 : 1);
    });
}

TEST(RegistrationCacheTest, ALatePeerIsNamedAndLeavingEndsTheWait) {
    run(3, [](Member& member) {
        std::unique_ptr<RegistrationCache> cache;
        const bool answers = member.rank != 1;
        if (answers) cache = std::move(cache_of(member).value());
        if (member.rank == 0) {
            const auto base = member.driver.allocate(4096);
            const Status late =
                cache->find(base, 64, Deadline::after(std::chrono::seconds(2))).status();
            EXPECT_EQ(late.code(), StatusCode::kTimeout);
            EXPECT_EQ(late.peer(), 1);
            std::thread leaving([&] {
                std::this_thread::sleep_for(std::chrono::milliseconds(50));
                cache->leave(Status::aborted("enough"));
            });
            EXPECT_EQ(cache->find(base, 64, test_deadline()).status().code(), StatusCode::kAborted);
            leaving.join();
        }
        member.together.arrive_and_wait();
    });
}

}  // namespace
}  // namespace pccl::transport::nvlink
