// SPDX-License-Identifier: Apache-2.0

// Waits for transfers end: with the transfer, at the deadline, or when it is cancelled.
#include <gmock/gmock.h>

#include "csrc/base/ids.h"
#include "tests/cpp/p2p/pair.h"

namespace pccl::p2p {
namespace {

using testing::HasSubstr;
using SessionTest = Pair;

TEST_P(SessionTest, RepeatedChecksMakeProgress) {
    auto work = client_->read(mine_.all(), all_of(remote_));
    ASSERT_TRUE(work.is_ok()) << work.status().to_string();
    const Deadline deadline = test_deadline();
    while (!work->poll() && !deadline.passed()) {
    }
    ASSERT_TRUE(work->is_complete());
    EXPECT_EQ(work->status().to_string(), "ok");
    EXPECT_EQ(mine_.bytes(), theirs_.bytes());
}

TEST_P(SessionTest, WhatIsGivenUpEndsSoonAndIsNotDone) {
    Stamped large(*client_, 256 * kMiB, 4);
    Stamped source(*server_, 256 * kMiB, 5);
    const RemoteMemory from = seen_by(*client_, *server_, *source.local);
    const Work work = client_->read(large.all(), all_of(from), bytes_of("never")).value();
    work.release();
    EXPECT_EQ(work.wait(test_deadline()).code(), StatusCode::kAborted);
    EXPECT_EQ(client_->deregister_memory(large.local).to_string(), "ok");
    ASSERT_EQ(client_->notify("server", bytes_of("next")).to_string(), "ok");
    const auto notified = server_->await_notifications(test_deadline());
    ASSERT_EQ(notified.size(), 1U);
    EXPECT_EQ(text_of(notified.front()), "next");
}

TEST_P(SessionTest, AWaitHasADeadlineThatNamesThePeer) {
    Stamped large(*client_, 256 * kMiB, 4);
    Stamped source(*server_, 256 * kMiB, 5);
    const RemoteMemory from = seen_by(*client_, *server_, *source.local);
    const Work work = client_->read(large.all(), all_of(from)).value();
    const Status late = work.wait(Deadline::after(Duration::zero()));
    EXPECT_EQ(late.code(), StatusCode::kTimeout);
    EXPECT_THAT(late.message(), HasSubstr("session \"server\""));
    EXPECT_EQ(work.wait(test_deadline()).to_string(), "ok") << "it goes on";
}

TEST_P(SessionTest, AFailureOfOneTransferSilencesNoOther) {
    Stamped freed(*server_, 100, 3);
    const RemoteMemory gone = seen_by(*client_, *server_, *freed.local);
    ASSERT_EQ(client_->connect("server", test_deadline()).to_string(), "ok");
    ASSERT_EQ(server_->deregister_memory(freed.local).to_string(), "ok");
    std::vector<Work> works;
    constexpr int kRounds = 50;
    for (int i = 0; i < kRounds; ++i) {
        works.push_back(
            client_->write({mine_.local, {0, 100}}, {gone, {0, 100}}, bytes_of("of what failed"))
                .value());
        works.push_back(
            client_
                ->write({mine_.local, {0, 100}}, {remote_, {0, 100}}, bytes_of("of what is there"))
                .value());
    }
    int notified = 0;
    while (notified < kRounds) {
        const auto some = server_->await_notifications(test_deadline());
        ASSERT_FALSE(some.empty()) << notified << " of " << kRounds;
        for (const auto& each : some) EXPECT_EQ(text_of(each), "of what is there");
        notified += static_cast<int>(some.size());
    }
    for (int i = 0; i < kRounds; ++i) {
        EXPECT_EQ(works[2 * i].wait(test_deadline()).code(), StatusCode::kUnavailable);
        EXPECT_EQ(works[2 * i + 1].wait(test_deadline()).to_string(), "ok");
    }
    EXPECT_TRUE(server_->notifications().empty());
}

TEST_P(SessionTest, AWaitEndsWithItsDeadlineWhileBytesMove) {
    const auto plan = Plan::make({mine_.local, StridedExtents{0, kBytes, 0, 500}},
                                 {remote_, StridedExtents{0, kBytes, 0, 500}})
                          .value();
    ASSERT_EQ(client_->connect("server", test_deadline()).to_string(), "ok");
    const Work work = client_->post(transport::RmaOp::kRead, plan).value();
    EXPECT_EQ(work.wait(Deadline::after(Duration::zero())).code(), StatusCode::kTimeout);
    EXPECT_EQ(work.wait(Deadline::after(std::chrono::milliseconds(1))).code(),
              StatusCode::kTimeout);
    EXPECT_FALSE(work.is_complete());
    EXPECT_EQ(work.wait(test_deadline()).to_string(), "ok");
}

}  // namespace
}  // namespace pccl::p2p
