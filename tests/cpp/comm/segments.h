// SPDX-License-Identifier: Apache-2.0

// A shared-memory segment of several ranks.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/comm/shm/shm_segment.h"
#include "tests/fakes/deadlines.h"

namespace pccl::comm {

using fakes::test_deadline;
using transport::Region;

inline constexpr std::size_t kBoardBytes = 256 * kKiB;

/// Ranks in this process, each with its own end of one region.
class ShmSegmentTest : public ::testing::Test {
   protected:
    void SetUp() override { meet(2); }

    void meet(int ranks) {
        for (int i = 0; i < ranks; ++i) waiters_.push_back(transport::Waiter::create().value());
        auto first = Region::create(
            std::move(transport::RegionMemory::in_new_file(kBoardBytes).value()), ranks);
        std::vector<std::unique_ptr<Region>> regions(1);
        for (Rank rank = 1; rank < ranks; ++rank) regions.push_back(accepted(*first, rank, ranks));
        ASSERT_TRUE(first->complete(test_deadline()).is_ok());
        regions[0] = std::move(first);
        for (auto& region : regions)
            segments_.push_back(std::make_unique<ShmSegment>(
                std::move(region), static_cast<Rank>(segments_.size()), ranks));
    }

    void open_all() {
        for (int round = 0; round < 3; ++round)
            for (auto& segment : segments_) ASSERT_TRUE(segment->open().is_ok());
        for (auto& segment : segments_) ASSERT_TRUE(segment->open().value());
    }

    std::vector<std::unique_ptr<transport::Waiter>> waiters_;
    std::vector<std::unique_ptr<ShmSegment>> segments_;

   private:
    std::unique_ptr<Region> accepted(Region& first, Rank rank, int ranks) {
        std::array<int, 2> ends{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
        std::unique_ptr<Region> region;
        std::thread acceptor([&, socket = UniqueFd(ends[1])]() mutable {
            const Region::Expected expected{
                .extent = {.offset = 0, .bytes = kBoardBytes}, .rank = rank, .ranks = ranks};
            const auto& waiter = waiters_[static_cast<std::size_t>(rank)];
            while (region == nullptr)
                region = std::move(Region::accept(socket, waiter->handles(), expected).value());
        });
        const Status offered =
            first.offer(rank, UniqueFd(ends[0]), waiters_[0]->handles(), test_deadline());
        acceptor.join();
        EXPECT_TRUE(offered.is_ok()) << offered.to_string();
        return region;
    }
};

}  // namespace pccl::comm
