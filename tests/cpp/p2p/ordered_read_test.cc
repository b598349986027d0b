// SPDX-License-Identifier: Apache-2.0

// Reads in the order of a stream.
#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "csrc/p2p/session/stream_order.h"
#include "csrc/sys/cuda/driver.h"
#include "tests/cpp/p2p/gpu_sessions.h"
#include "tests/cpp/p2p/pair.h"

namespace pccl::p2p {
namespace {

using testing::HasSubstr;

TEST_P(OrderedReadTest, ComesBetweenWhatItsStreamHasGotAndWhatThatGetsLater) {
    driver_.be_late(200);
    std::vector<std::byte> found(kBytes);
    const std::vector<std::byte> before(kBytes, std::byte{0x5A});
    copy(before, mine_.bytes());
    const Work work = read("block 7").value();
    copy(mine_.bytes(), found);
    await_stream();
    EXPECT_TRUE(std::ranges::equal(found, theirs_.bytes()));
    ASSERT_EQ(work.wait(test_deadline()).to_string(), "ok");
    EXPECT_EQ(work.stats().path, GetParam().path);
    const auto notified = server_->await_notifications(test_deadline());
    ASSERT_EQ(notified.size(), 1U);
    EXPECT_EQ(text_of(notified.front()), "block 7");
}

TEST_P(OrderedReadTest, TakesAnyNumberOfBlocks) {
    constexpr std::uint64_t kCount = 2500;
    const auto plan = Plan::make({mine_.local, StridedExtents{0, 500, 1000, kCount}},
                                 {remote_, StridedExtents{7, 500, 1200, kCount}})
                          .value();
    std::vector<std::byte> expected(mine_.bytes().begin(), mine_.bytes().end());
    for (std::size_t i = 0; i < kCount; ++i)
        std::ranges::copy(theirs_.bytes().subspan(7 + i * 1200, 500),
                          expected.begin() + static_cast<std::ptrdiff_t>(i * 1000));
    const Work work = client_->read_in_order(stream_, plan, test_deadline()).value();
    await_stream();
    EXPECT_TRUE(std::ranges::equal(mine_.bytes(), expected));
    EXPECT_EQ(work.wait(test_deadline()).to_string(), "ok");
}

TEST_P(OrderedReadTest, ItsStreamGoesOnWhereItFails) {
    ASSERT_EQ(ended(read()).to_string(), "ok");
    driver_.fail_copies(Status::internal("cuMemcpyAsync: an illegal memory access"));
    const Work failed = read("never told").value();
    driver_.fail_copies(Status::ok());
    await_stream();
    EXPECT_THAT(failed.wait(test_deadline()).message(), HasSubstr("illegal memory access"));
    ASSERT_EQ(server_->deregister_memory(theirs_.local).to_string(), "ok");
    const Work late = read("never told").value();
    await_stream();
    EXPECT_EQ(late.wait(test_deadline()).code(), StatusCode::kUnavailable);
    ASSERT_TRUE(client_->notify("server", bytes_of("the only one")).is_ok());
    const auto notified = server_->await_notifications(test_deadline());
    ASSERT_EQ(notified.size(), 1U);
    EXPECT_EQ(text_of(notified.front()), "the only one");
}

/// Notifications that peers receive tell of transfers before them; these are none of them.
TEST_P(OrderedReadTest, HoldsUpNoOtherTransferThatIsPosted) {
    ASSERT_EQ(client_->connect("server", test_deadline()).to_string(), "ok");
    driver_.be_late(1000000000);
    const auto never = event_of(stream_).value();
    driver_.be_late(3);
    const Work held = client_->read(mine_.all(), all_of(remote_), {}, never).value();
    const Stream other{driver_.create_stream(0).value(), 0};
    const Work work = client_->read_in_order(other, all_in_one_, test_deadline()).value();
    EXPECT_EQ(work.wait(test_deadline()).to_string(), "ok");
    EXPECT_FALSE(held.is_complete());
    driver_.come_at_once();
    EXPECT_EQ(held.wait(test_deadline()).to_string(), "ok");
}

/// An owner that ends a registration waits for writes under way: these must not wait for a stream.
TEST_P(OrderedReadTest, HoldsUpNoWriteThatComesLater) {
    ASSERT_EQ(ended(read()).to_string(), "ok");
    driver_.be_late(1000000000);
    const Work held = read().value();
    driver_.be_late(3);
    const std::vector<std::byte> mine(mine_.bytes().begin(), mine_.bytes().end());
    ASSERT_EQ(ended(client_->write(mine_.all(), all_of(remote_))).to_string(), "ok");
    EXPECT_TRUE(std::ranges::equal(theirs_.bytes(), mine));
    EXPECT_EQ(server_->deregister_memory(theirs_.local).to_string(), "ok");
    EXPECT_FALSE(held.is_complete());
    driver_.come_at_once();
    EXPECT_EQ(held.wait(test_deadline()).code(), StatusCode::kUnavailable);
}

TEST_P(OrderedReadTest, AStreamThatIsCapturedIsRefused) {
    driver_.capture(stream_.stream, 4);
    EXPECT_EQ(ended(read()).code(), StatusCode::kUnsupported);
    EXPECT_EQ(event_of(stream_).status().code(), StatusCode::kUnsupported);
}

INSTANTIATE_TEST_SUITE_P(Ipc, OrderedReadTest,
                         testing::Values(RouteCase{"shm", Place::kGpu, Place::kGpu,
                                                   "shm, by CUDA IPC"}));

}  // namespace
}  // namespace pccl::p2p
