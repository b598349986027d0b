// SPDX-License-Identifier: Apache-2.0

// Shared-memory segments: what all ranks of one must know alike, whatever the others do meanwhile.
#include "csrc/comm/shm/shm_segment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/collective/fingerprint.h"
#include "csrc/comm/shm/shm_executor.h"
#include "tests/fakes/deadlines.h"
#include "tests/fakes/forked_child.h"

namespace pccl::comm {
namespace {

using fakes::test_deadline;
using ::testing::HasSubstr;
using transport::Region;

constexpr std::size_t kBoardBytes = 256 * kKiB;

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

TEST_F(ShmSegmentTest, WhoLeavesAtOnceChangesNoChoiceOfWhoComesLater) {
    ASSERT_FALSE(segments_[0]->open().value());
    ASSERT_FALSE(segments_[1]->open().value()) << "rank 0 has not tried to read rank 1 yet";
    ASSERT_TRUE(segments_[0]->open().value());
    segments_[0]->leave(Status::aborted("done"));
    ASSERT_TRUE(segments_[1]->open().value());
    EXPECT_TRUE(segments_[0]->reads_directly());
    EXPECT_TRUE(segments_[1]->reads_directly());
}

TEST_F(ShmSegmentTest, WhoIsDoneBeforeOthersHaveMetAllIsNoLossToThem) {
    ASSERT_FALSE(segments_[0]->open().value());
    ASSERT_FALSE(segments_[1]->open().value());
    ASSERT_TRUE(segments_[0]->open().value());
    segments_[0]->leave(Status::aborted("done"));
    EXPECT_TRUE(segments_[1]->look_while_opening().is_ok());
    EXPECT_TRUE(segments_[1]->open().value());
    EXPECT_EQ(segments_[1]->look_at_all().code(), StatusCode::kPeerLost) << "from now on it is one";
}

TEST_F(ShmSegmentTest, WhoLeavesBeforeItHasMetAllIsLost) {
    ASSERT_FALSE(segments_[0]->open().value());
    segments_[0]->leave(Status::aborted("interrupted"));
    const auto opened = segments_[1]->open();
    EXPECT_EQ(opened.status().code(), StatusCode::kPeerLost);
    EXPECT_EQ(opened.status().peer(), 0);
    EXPECT_EQ(segments_[1]->look_while_opening().code(), StatusCode::kPeerLost);
}

TEST_F(ShmSegmentTest, WhoHasMetAllAndFailedIsLostToThoseWhoStillMeet) {
    ASSERT_FALSE(segments_[0]->open().value());
    ASSERT_FALSE(segments_[1]->open().value());
    ASSERT_TRUE(segments_[0]->open().value());
    segments_[0]->leave(Status::resource_exhausted("no descriptors"));
    EXPECT_EQ(segments_[1]->look_while_opening().code(), StatusCode::kPeerLost);
}

TEST_F(ShmSegmentTest, WhoHasLeftIsNoLongerRead) {
    open_all();
    const std::vector<std::byte> lent(1000, std::byte{1});
    std::vector<std::byte> taken(lent.size());
    const auto address = reinterpret_cast<std::uint64_t>(lent.data());
    ASSERT_TRUE(segments_[0]->read_directly(1, address, taken).is_ok());
    EXPECT_EQ(taken, lent);
    segments_[1]->leave(Status::timeout("it timed out waiting for rank 0", 0));
    const Status read = segments_[0]->read_directly(1, address, taken);
    EXPECT_EQ(read.code(), StatusCode::kPeerLost);
    EXPECT_EQ(read.peer(), 1);
    EXPECT_THAT(read.message(), HasSubstr("rank 1 has left the group: it timed out"));
}

TEST_F(ShmSegmentTest, AnotherProcessIsReadUntilItEnds) {
    std::vector<std::byte> lent(100'000, std::byte{1});
    const auto address = reinterpret_cast<std::uint64_t>(lent.data());
    const auto open = [](ShmSegment& segment) {
        const Deadline deadline = test_deadline();
        Result<bool> opened = false;
        while (opened.is_ok() && !*opened && !deadline.passed()) opened = segment.open();
        return opened.is_ok() && *opened;
    };
    std::optional<fakes::ForkedChild> child;
    child.emplace([&] {
        std::ranges::fill(lent, std::byte{2});
        const auto liveness = waiters_[1]->hold_liveness();
        while (open(*segments_[1])) ::pause();
        return 1;
    });
    ASSERT_TRUE(open(*segments_[0]));
    if (!segments_[0]->reads_directly())
        GTEST_SKIP() << "a child and its parent are not to be read";
    std::vector<std::byte> taken(lent.size());
    ASSERT_EQ(segments_[0]->read_directly(1, address, taken).to_string(), "ok");
    EXPECT_THAT(taken, ::testing::Each(std::byte{2}));
    child.reset();
    const Status read = segments_[0]->read_directly(1, address, taken);
    EXPECT_EQ(read.code(), StatusCode::kPeerLost);
    EXPECT_EQ(read.peer(), 1);
}

class ShmSegmentOfThreeTest : public ShmSegmentTest {
   protected:
    void SetUp() override { meet(3); }
};

TEST_F(ShmSegmentOfThreeTest, WhoWaitsForOneRankTwiceSaysSoTwice) {
    for (auto& segment : segments_) ASSERT_FALSE(segment->open().value());
    ASSERT_EQ(segments_[0]->awaited(), 1) << "to come";
    const std::uint64_t before = segments_[0]->waits();
    ASSERT_FALSE(segments_[0]->open().value());
    ASSERT_EQ(segments_[0]->awaited(), 1) << "to try whether it can read the others";
    EXPECT_GT(segments_[0]->waits(), before);
}

/// A rank's part in a broadcast from rank 0 that takes four rounds.
class Broadcast {
   public:
    explicit Broadcast(ShmSegment& segment) : executor_(segment) {
        if (segment.self() == 0) broadcast_.inputs = broadcast_.outputs;
        executor_.start({.window = kWindow}, header_of(signature_of(broadcast_)), broadcast_);
    }

    /// Whether it has moved.
    bool progress() {
        bool moved = false;
        EXPECT_TRUE(executor_.progress(moved).is_ok());
        return moved;
    }

   private:
    static constexpr std::size_t kWindow = 64;
    std::vector<std::byte> data_ = std::vector<std::byte>(4 * kWindow);
    const Block block_{data_.data(), data_.size()};
    Collective broadcast_{.kind = schedule::CollectiveKind::kBroadcast,
                          .type = DataType::kUint8,
                          .outputs = {&block_, 1}};
    ShmExecutor executor_;
};

TEST_F(ShmSegmentOfThreeTest, WhoWaitsForAnotherThanBeforeLooksOnceMoreBeforeItSleeps) {
    open_all();
    std::vector<std::unique_ptr<Broadcast>> ranks;
    for (auto& segment : segments_) ranks.push_back(std::make_unique<Broadcast>(*segment));
    while (ranks[0]->progress()) continue;
    ASSERT_EQ(segments_[0]->awaited(), 1);
    while (ranks[1]->progress()) continue;
    // Rank 2 may just have looked who waits for it, and rung nobody.
    EXPECT_TRUE(ranks[0]->progress());
    ASSERT_EQ(segments_[0]->awaited(), 2);
    EXPECT_FALSE(ranks[0]->progress()) << "nothing has changed: time to sleep";
}

}  // namespace
}  // namespace pccl::comm
