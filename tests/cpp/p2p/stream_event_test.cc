// SPDX-License-Identifier: Apache-2.0

// Transfers wait for the stream that they are given.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "csrc/p2p/session/stream_order.h"
#include "tests/cpp/p2p/gpu_sessions.h"
#include "tests/cpp/p2p/pair.h"

namespace pccl::p2p {
namespace {

TEST_P(GpuSessionTest, NothingMovesBeforeTheStreamThatItIsGiven) {
    ASSERT_EQ(client_->connect("server", test_deadline()).to_string(), "ok");
    const std::vector<std::byte> old(theirs_.bytes().begin(), theirs_.bytes().end());
    void* const stream = driver_.create_stream(0).value();
    driver_.be_late(1000000000);
    const Work held =
        client_->write(mine_.all(), all_of(remote_), {}, event_of({stream, 0}).value()).value();
    driver_.be_late(3);
    const Work behind = client_->write(mine_.all(), all_of(remote_)).value();
    for (int look = 0; look < 100; ++look) ASSERT_FALSE(held.poll() || behind.poll());
    EXPECT_TRUE(std::ranges::equal(theirs_.bytes(), old));
    driver_.come_at_once();
    EXPECT_EQ(held.wait(test_deadline()).to_string(), "ok");
    EXPECT_EQ(behind.wait(test_deadline()).to_string(), "ok");
    EXPECT_TRUE(std::ranges::equal(theirs_.bytes(), mine_.bytes()));
}

TEST_P(GpuSessionTest, WhatWaitsForAStreamEndsWithItsSession) {
    ASSERT_EQ(client_->connect("server", test_deadline()).to_string(), "ok");
    void* const stream = driver_.create_stream(0).value();
    driver_.be_late(1000000000);
    const auto after = event_of({stream, 0}).value();
    driver_.be_late(3);
    const Work given_up = client_->read(mine_.all(), all_of(remote_), {}, after).value();
    given_up.release();
    EXPECT_EQ(given_up.wait(test_deadline()).code(), StatusCode::kAborted);
    const Work held = client_->read(mine_.all(), all_of(remote_), {}, after).value();
    client_->close();
    EXPECT_EQ(held.wait(test_deadline()).code(), StatusCode::kAborted);
}

}  // namespace
}  // namespace pccl::p2p
