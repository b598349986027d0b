// SPDX-License-Identifier: Apache-2.0

// Regions: how ranks come to share memory, and what they refuse.
#include "csrc/transport/region.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "csrc/base/ids.h"
#include "tests/fakes/deadlines.h"

namespace pccl::transport {
namespace {

using fakes::test_deadline;

constexpr std::size_t kRegionBytes = 64 * kKiB;
constexpr RegionExtent kExtent{.offset = 0, .bytes = kRegionBytes};

struct Sockets {
    UniqueFd ours;
    UniqueFd theirs;
};

Sockets socket_pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::unique_ptr<Region> made_by_rank_zero(int ranks) {
    return Region::create(std::move(RegionMemory::in_new_file(kRegionBytes).value()), ranks);
}

std::unique_ptr<Region> accept_one(UniqueFd& socket, const Waiter& waiter, Rank rank, int ranks) {
    for (;;) {
        auto region = Region::accept(socket, waiter.handles(),
                                     {.extent = kExtent, .rank = rank, .ranks = ranks});
        EXPECT_TRUE(region.is_ok()) << region.status().to_string();
        if (!region.is_ok() || *region != nullptr) return std::move(*region);
    }
}

TEST(RegionTest, AllRanksSeeOneMemoryAndCanRing) {
    constexpr int kRanks = 4;
    std::array<std::unique_ptr<Waiter>, kRanks> waiters;
    for (auto& waiter : waiters) waiter = std::move(Waiter::create().value());
    auto first = made_by_rank_zero(kRanks);
    std::array<std::unique_ptr<Region>, kRanks> others;
    for (Rank rank = 1; rank < kRanks; ++rank) {
        Sockets pair = socket_pair();
        auto& other = others[static_cast<std::size_t>(rank)];
        std::thread acceptor([&] {
            other = accept_one(pair.theirs, *waiters[static_cast<std::size_t>(rank)], rank, kRanks);
        });
        const Status offered =
            first->offer(rank, std::move(pair.ours), waiters[0]->handles(), test_deadline());
        EXPECT_TRUE(offered.is_ok()) << offered.to_string();
        acceptor.join();
        EXPECT_FALSE(other->is_complete().value()) << "the other doorbells are missing";
    }
    ASSERT_TRUE(first->complete(test_deadline()).is_ok());
    first->memory()[7] = std::byte{42};
    for (Rank rank = 1; rank < kRanks; ++rank) {
        Region& region = *others[static_cast<std::size_t>(rank)];
        EXPECT_TRUE(region.is_complete().value());
        EXPECT_EQ(region.memory()[7], std::byte{42});
        for (Rank peer = 0; peer < kRanks; ++peer) {
            if (peer == rank) continue;
            region.ring(peer);
            EXPECT_TRUE(region.look(peer).is_ok());
        }
    }
}

/// Rank 1 of three has had the offer of rank 0, and waits for more.
struct Offered {
    std::unique_ptr<Waiter> waiter = std::move(Waiter::create().value());
    std::unique_ptr<Region> first = made_by_rank_zero(3);
    std::unique_ptr<Region> other;

    Offered() {
        Sockets pair = socket_pair();
        std::thread acceptor([&] { other = accept_one(pair.theirs, *waiter, 1, 3); });
        EXPECT_TRUE(
            first->offer(1, std::move(pair.ours), waiter->handles(), test_deadline()).is_ok());
        acceptor.join();
    }
};

TEST(RegionTest, ARankZeroThatLeavesEarlyIsNamed) {
    Offered offered;
    offered.first.reset();
    const auto complete = offered.other->is_complete();
    EXPECT_EQ(complete.status().code(), StatusCode::kPeerLost);
    EXPECT_EQ(complete.status().peer(), 0);
}

TEST(RegionTest, ARankThatRankZeroLostIsNamedToTheOthers) {
    Offered offered;
    offered.first->call_off(Status::peer_lost(2, "rank 2: it has gone"));
    offered.first.reset();
    const auto complete = offered.other->is_complete();
    EXPECT_EQ(complete.status().code(), StatusCode::kPeerLost);
    EXPECT_EQ(complete.status().peer(), 2);
    EXPECT_NE(complete.status().message().find("rank 2"), std::string::npos);
}

TEST(RegionTest, WhoSleepsUntilTheRegionIsCompleteIsWoken) {
    auto first = made_by_rank_zero(2);
    const auto waiter = std::move(Waiter::create().value());
    std::unique_ptr<Region> other;
    Sockets pair = socket_pair();
    std::thread acceptor([&] { other = accept_one(pair.theirs, *waiter, 1, 2); });
    EXPECT_TRUE(first->offer(1, std::move(pair.ours), waiter->handles(), test_deadline()).is_ok());
    acceptor.join();
    const std::uint32_t ticket = waiter->prepare();
    ASSERT_TRUE(first->complete(test_deadline()).is_ok());
    const std::uint32_t after = waiter->prepare();
    waiter->cancel();
    waiter->cancel();
    EXPECT_NE(after, ticket) << "the doorbell was not rung";
}

TEST(RegionTest, ARankThatDoesNotAnswerAnOfferIsNamed) {
    auto first = made_by_rank_zero(3);
    const auto waiter = std::move(Waiter::create().value());
    Sockets pair = socket_pair();
    pair.theirs.reset();
    const Status offered =
        first->offer(2, std::move(pair.ours), waiter->handles(), test_deadline());
    EXPECT_EQ(offered.code(), StatusCode::kPeerLost);
    EXPECT_EQ(offered.peer(), 2);
}

}  // namespace
}  // namespace pccl::transport
