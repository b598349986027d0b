// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/piece_queue.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace pccl::transport {
namespace {

sys::ProcessPiece piece(std::uint64_t number) { return {.there = number, .here = {}}; }

TEST(PieceQueueTest, IsADeque) {
    std::mt19937 random(3);
    PieceQueue queue;
    std::deque<std::uint64_t> expected;
    std::uint64_t next = 0;
    for (int round = 0; round < 3000; ++round) {
        for (sys::ProcessPiece& each : queue.grow(random() % 40)) {
            each = piece(next);
            expected.push_back(next++);
        }
        const std::size_t dropped = random() % (std::min<std::size_t>(queue.size(), 39) + 1);
        queue.drop(dropped);
        expected.erase(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(dropped));
        ASSERT_EQ(queue.size(), expected.size());
        if (expected.empty()) continue;
        const std::size_t any = random() % expected.size();
        EXPECT_EQ(queue[any].there, expected[any]);
        EXPECT_EQ(queue.front().there, expected.front());
    }
    queue.clear();
    EXPECT_EQ(queue.size(), 0U);
}

}  // namespace
}  // namespace pccl::transport
