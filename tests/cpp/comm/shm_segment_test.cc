// SPDX-License-Identifier: Apache-2.0

// Shared-memory segments: what all ranks of one must know alike, whatever the others do meanwhile.
#include "csrc/comm/shm/shm_segment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "tests/cpp/comm/segments.h"
#include "tests/fakes/deadlines.h"
#include "tests/fakes/forked_child.h"

namespace pccl::comm {
namespace {

using fakes::test_deadline;
using ::testing::HasSubstr;

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

}  // namespace
}  // namespace pccl::comm
