// Boards: what all ranks of one must know alike, whatever the others do meanwhile.
#include "csrc/comm/board/board.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <thread>
#include <utility>

namespace pccl::comm {
namespace {

using transport::Region;

constexpr std::size_t kBytes = 256 * kKiB;

Deadline patience() { return Deadline::after(std::chrono::seconds(20)); }

/// Two ranks in this process, each with its own end of one region.
class BoardTest : public testing::Test {
   protected:
    void SetUp() override {
        for (auto& waiter : waiters_) waiter = std::move(transport::Waiter::create().value());
        std::array<int, 2> ends{};
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
        auto first =
            Region::create(std::move(transport::RegionMemory::in_new_file(kBytes).value()), 2);
        std::unique_ptr<Region> second;
        std::thread acceptor([&, socket = UniqueFd(ends[1])]() mutable {
            while (second == nullptr)
                second =
                    std::move(Region::accept(
                                  socket, waiters_[1]->handles(),
                                  {.extent = {.offset = 0, .bytes = kBytes}, .rank = 1, .ranks = 2})
                                  .value());
        });
        const Status offered =
            first->offer(1, UniqueFd(ends[0]), waiters_[0]->handles(), patience());
        acceptor.join();
        ASSERT_TRUE(offered.is_ok()) << offered.to_string();
        ASSERT_TRUE(first->complete(patience()).is_ok());
        boards_[0] = std::make_unique<Board>(std::move(first), 0, 2);
        boards_[1] = std::make_unique<Board>(std::move(second), 1, 2);
    }

    std::array<std::unique_ptr<transport::Waiter>, 2> waiters_;
    std::array<std::unique_ptr<Board>, 2> boards_;
};

TEST_F(BoardTest, WhoLeavesAtOnceChangesNoChoiceOfWhoComesLater) {
    ASSERT_FALSE(boards_[0]->open().value());
    ASSERT_FALSE(boards_[1]->open().value()) << "rank 0 has not tried to read rank 1 yet";
    ASSERT_TRUE(boards_[0]->open().value());
    boards_[0]->leave(Status::aborted("done"));
    ASSERT_TRUE(boards_[1]->open().value());
    EXPECT_TRUE(boards_[0]->reads_directly());
    EXPECT_TRUE(boards_[1]->reads_directly());
}

TEST_F(BoardTest, WhoIsDoneBeforeOthersHaveMetAllIsNoLossToThem) {
    ASSERT_FALSE(boards_[0]->open().value());
    ASSERT_FALSE(boards_[1]->open().value());
    ASSERT_TRUE(boards_[0]->open().value());
    boards_[0]->leave(Status::aborted("done"));
    EXPECT_TRUE(boards_[1]->look_at_meeting().is_ok());
    EXPECT_TRUE(boards_[1]->open().value());
    EXPECT_EQ(boards_[1]->look_at_all().code(), StatusCode::kPeerLost) << "from now on it is one";
}

TEST_F(BoardTest, WhoLeavesBeforeItHasMetAllIsLost) {
    ASSERT_FALSE(boards_[0]->open().value());
    boards_[0]->leave(Status::aborted("interrupted"));
    const auto opened = boards_[1]->open();
    EXPECT_EQ(opened.status().code(), StatusCode::kPeerLost);
    EXPECT_EQ(opened.status().peer(), 0);
    EXPECT_EQ(boards_[1]->look_at_meeting().code(), StatusCode::kPeerLost);
}

TEST_F(BoardTest, WhoHasMetAllAndFailedIsLostToThoseWhoStillMeet) {
    ASSERT_FALSE(boards_[0]->open().value());
    ASSERT_FALSE(boards_[1]->open().value());
    ASSERT_TRUE(boards_[0]->open().value());
    boards_[0]->leave(Status::resource_exhausted("no descriptors"));
    EXPECT_EQ(boards_[1]->look_at_meeting().code(), StatusCode::kPeerLost);
}

}  // namespace
}  // namespace pccl::comm
