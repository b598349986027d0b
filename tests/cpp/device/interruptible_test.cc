// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "csrc/device/device_group.h"
#include "tests/cpp/device/group_calls.h"

namespace pccl::device {
namespace {

using std::chrono::milliseconds;

TEST_F(RendezvousTest, AnInterruptedRankNotifiesThoseThatWait) {
    come(0);
    std::atomic<bool> is_tired = false;
    come(1, [&] { return is_tired ? Status::aborted("Ctrl-C") : Status::ok(); });
    std::this_thread::sleep_for(milliseconds(300));  // for rank 2, which does not come
    is_tired = true;
    EXPECT_EQ(outcome(1).code(), StatusCode::kAborted);
    EXPECT_EQ(outcome(1).message(), "Ctrl-C");
    EXPECT_EQ(outcome(0).code(), StatusCode::kPeerLost);
    EXPECT_EQ(outcome(0).peer(), 1);
    EXPECT_EQ(outcome(0).message(), "rank 1: Ctrl-C");
}

}  // namespace
}  // namespace pccl::device
