// SPDX-License-Identifier: Apache-2.0

// How ranks share GPU memory, on a driver in host memory; ranks are threads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <bit>
#include <chrono>
#include <set>
#include <thread>

#include "csrc/sys/socket/socket.h"
#include "csrc/transport/nvlink/registration_cache.h"
#include "csrc/transport/nvlink/symmetric_heap.h"
#include "tests/fakes/deadlines.h"
#include "tests/fakes/fake_cuda.h"

namespace pccl::transport::nvlink {
namespace {

using fakes::FakeCudaDriver;
using fakes::FakeGpus;
using fakes::test_deadline;

/// One rank, as a test sees it.
struct Member {
    Rank rank;
    FakeCudaDriver& driver;
    PeerSockets& sockets;
    std::barrier<>& together;
};

Result<std::unique_ptr<PeerSockets>> listen(Rank rank, int size, std::uint8_t secret = 7) {
    PeerSocketsOptions options{.rank = rank, .size = size};
    options.secret.fill(secret);
    return PeerSockets::listen(options);
}

void run(int size, const std::function<void(Member&)>& body) {
    const auto gpus = std::make_shared<FakeGpus>();
    std::vector<std::unique_ptr<PeerSockets>> sockets;
    std::vector<std::string> addresses;
    for (Rank rank = 0; rank < size; ++rank) {
        auto listening = listen(rank, size);
        ASSERT_TRUE(listening.is_ok()) << listening.status().to_string();
        sockets.push_back(std::move(*listening));
        addresses.push_back(sockets.back()->address());
    }
    std::barrier together(size);
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < size; ++rank) {
        threads.emplace_back([&, rank] {
            FakeCudaDriver driver(gpus);
            auto& own = sockets[static_cast<std::size_t>(rank)];
            const Status connected = own->connect(addresses, test_deadline());
            ASSERT_TRUE(connected.is_ok()) << connected.to_string();
            Member member{rank, driver, *own, together};
            body(member);
        });
    }
    for (std::thread& thread : threads) thread.join();
}

std::uint64_t& word_at(sys::cuda::DeviceAddress address) {
    return *std::bit_cast<std::uint64_t*>(address);
}

TEST(PeerSocketsTest, AStrangerIsRefusedAndAMissingRankNamed) {
    auto host = listen(0, 2);
    ASSERT_TRUE(host.is_ok());
    auto stranger = listen(1, 2, 8);
    ASSERT_TRUE(stranger.is_ok());
    const std::vector<std::string> addresses{(*host)->address(), (*stranger)->address()};
    std::thread thread([&] {
        const auto limit = Deadline::after(std::chrono::seconds(1));
        EXPECT_FALSE((*stranger)->connect(addresses, limit).is_ok());
    });
    const Status status =
        (*host)->connect(addresses, Deadline::after(std::chrono::milliseconds(400)));
    thread.join();
    EXPECT_EQ(status.code(), StatusCode::kTimeout);
    EXPECT_EQ(status.peer(), 1);
}

Result<std::unique_ptr<SymmetricHeap>> heap_of(Member& member, std::size_t bytes) {
    return SymmetricHeap::create({.driver = member.driver, .bytes = bytes}, member.sockets,
                                 test_deadline());
}

class HeapTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, HeapTest, testing::Values(1, 2, 3, 8));

TEST_P(HeapTest, EveryRankReachesEveryHeap) {
    run(GetParam(), [](Member& member) {
        auto heap = heap_of(member, 1000);
        ASSERT_TRUE(heap.is_ok()) << heap.status().to_string();
        EXPECT_EQ((*heap)->bytes(), 64U << 10);
        const auto size = static_cast<std::size_t>(member.sockets.size());
        const auto self = static_cast<std::size_t>(member.rank);
        for (std::size_t peer = 0; peer < size; ++peer) {
            EXPECT_EQ(word_at((*heap)->bases()[peer] + 8 * self), 0U);
            word_at((*heap)->bases()[peer] + 8 * self) = 100 * self + peer;
        }
        member.together.arrive_and_wait();
        for (std::size_t sender = 0; sender < size; ++sender)
            EXPECT_EQ(word_at((*heap)->bases()[self] + 8 * sender), 100 * sender + self);
        member.together.arrive_and_wait();
        heap->reset();
        EXPECT_EQ(member.driver.open_mappings(), 0);
    });
}

TEST(HeapTest, ARankThatCannotMapSaysWhose) {
    run(2, [](Member& member) {
        if (member.rank == 1)
            member.driver.fail("import_memory", Status::unsupported("no peer access"));
        const auto heap = heap_of(member, 1000);
        EXPECT_EQ(heap.is_ok(), member.rank == 0);
        if (member.rank == 0) return;
        EXPECT_EQ(heap.status().code(), StatusCode::kUnsupported);
        EXPECT_EQ(heap.status().peer(), 0);
        EXPECT_EQ(member.driver.open_mappings(), 0);
    });
}

TEST(HeapTest, ALargeOneIsAnAllocationOfItsOwn) {
    run(2, [](Member& member) {
        const std::size_t bytes = 3 * HeapStock::kAllocation + 8;
        const auto heap = heap_of(member, bytes);
        ASSERT_TRUE(heap.is_ok()) << heap.status().to_string();
        EXPECT_GE((*heap)->bytes(), bytes);
        const std::size_t last = bytes - sizeof(std::uint64_t);
        const auto peer = static_cast<std::size_t>(1 - member.rank);
        word_at((*heap)->bases()[peer] + last) = static_cast<std::uint64_t>(member.rank) + 1;
        member.together.arrive_and_wait();
        EXPECT_EQ(word_at((*heap)->bases()[1 - peer] + last), peer + 1);
        member.together.arrive_and_wait();
    });
}

TEST(HeapTest, FurtherGroupsMapNothing) {
    run(3, [](Member& member) {
        auto first = heap_of(member, 1000);
        ASSERT_TRUE(first.is_ok()) << first.status().to_string();
        if (member.rank == 1) word_at((*first)->bases()[0]) = 1;
        member.together.arrive_and_wait();
        for (const char* function : {"create", "map", "import_memory"})
            member.driver.fail(function, Status::internal("a further group maps"));
        auto second = heap_of(member, 100'000);
        ASSERT_TRUE(second.is_ok()) << second.status().to_string();
        EXPECT_EQ(member.driver.open_mappings(), 3);
        for (std::size_t peer = 0; peer < 3; ++peer) {
            EXPECT_GE((*second)->bases()[peer], (*first)->bases()[peer] + (*first)->bytes());
            EXPECT_EQ(word_at((*second)->bases()[peer]), 0U);
        }
        member.together.arrive_and_wait();
        first->reset();
        word_at((*second)->bases()[2] + 8 * static_cast<std::size_t>(member.rank)) = 7;
        member.together.arrive_and_wait();
        for (std::size_t sender = 0; sender < 3; ++sender)
            EXPECT_EQ(word_at((*second)->bases()[2] + 8 * sender), 7U);
        member.together.arrive_and_wait();
        second->reset();
        EXPECT_EQ(member.driver.open_mappings(), 0);
    });
}

TEST(HeapTest, WhatOneGroupHadNoOtherGets) {
    constexpr std::size_t kQuarter = HeapStock::kAllocation / 4;
    run(2, [](Member& member) {
        const auto lasting = heap_of(member, kQuarter);
        std::set<sys::cuda::DeviceAddress> seen{(*lasting)->bases()[0]};
        for (int i = 0; i < 4; ++i) {
            const auto passing = heap_of(member, kQuarter);
            ASSERT_TRUE(passing.is_ok()) << passing.status().to_string();
            const auto base = (*passing)->bases()[0];
            EXPECT_EQ(word_at(base), 0U);
            EXPECT_EQ(word_at(base + kQuarter - 8), 0U);
            EXPECT_TRUE(seen.insert(base).second);
            member.together.arrive_and_wait();
            if (member.rank == 1) word_at(base) = word_at(base + kQuarter - 8) = 1;
            member.together.arrive_and_wait();
        }
        EXPECT_EQ(member.driver.open_mappings(), 2);
    });
}

TEST(HeapTest, WhatAPeerCannotHaveIsRefused) {
    FakeCudaDriver driver(std::make_shared<FakeGpus>());
    const auto stock = HeapStock::of(driver, 0);
    const auto claimed = stock->claim(1000);
    ASSERT_TRUE(claimed.is_ok());
    const auto memory = claimed->memory->descriptor();
    ASSERT_TRUE(memory.is_ok());
    const HeapExtent good = claimed->extent;
    EXPECT_EQ(stock->join(*memory, good)->extent.offset, good.offset);
    const auto refused = [&](const std::function<void(HeapExtent&)>& spoil) {
        HeapExtent extent = good;
        spoil(extent);
        return stock->join(*memory, extent).status().code() == StatusCode::kInvalidArgument;
    };
    EXPECT_TRUE(refused([](HeapExtent& extent) { extent.offset = 100; }));
    EXPECT_TRUE(refused([](HeapExtent& extent) { extent.offset = extent.allocated; }));
    EXPECT_TRUE(refused([](HeapExtent& extent) { extent.offset = 0 - std::uint64_t{64 << 10}; }));
    EXPECT_TRUE(refused([](HeapExtent& extent) { extent.bytes = extent.allocated + 1; }));
    EXPECT_TRUE(refused([](HeapExtent& extent) { extent.allocated *= 2; }));
}

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

TEST(RegistrationCacheTest, KnowsWhatOfItsPeersIsMapped) {
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

TEST(RegistrationCacheTest, WhoLeavesSaysWhy) {
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
