// SPDX-License-Identifier: Apache-2.0

// Every rank reaches the heap of every rank.
#include "csrc/transport/nvlink/symmetric_heap.h"

#include <gtest/gtest.h>

#include "tests/cpp/transport/nvlink_members.h"

namespace pccl::transport::nvlink {
namespace {

class HeapTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, HeapTest, testing::Values(1, 2, 3, 8));

TEST_P(HeapTest, EveryRankReachesEveryHeap) {
    run(GetParam(), [](Member& member) {
        auto heap = heap_of(member, 1000);
        ASSERT_TRUE(heap.is_ok()) << heap.status().to_string();
        EXPECT_EQ((*heap)->bytes(), 64U << 10);
        const auto size = static_cast<std::size_t>(member.sockets.size());
        const auto self = static_cast<std::size_t>(member.rank);
        for (std::size_t peer = 0; peer < size; ++peer) {
            EXPECT_EQ(word_at((*heap)->bases()[peer] + 8 * self), 0U);
            word_at((*heap)->bases()[peer] + 8 * self) = 100 * self + peer;
        }
        member.together.arrive_and_wait();
        for (std::size_t sender = 0; sender < size; ++sender)
            EXPECT_EQ(word_at((*heap)->bases()[self] + 8 * sender), 100 * sender + self);
        member.together.arrive_and_wait();
        heap->reset();
        EXPECT_EQ(member.driver.open_mappings(), 0);
    });
}

TEST(HeapTest, ARankThatCannotMapNamesTheOwner) {
    run(2, [](Member& member) {
        if (member.rank == 1)
            member.driver.fail("import_memory", Status::unsupported("no peer access"));
        const auto heap = heap_of(member, 1000);
        EXPECT_EQ(heap.is_ok(), member.rank == 0);
        if (member.rank == 0) return;
        EXPECT_EQ(heap.status().code(), StatusCode::kUnsupported);
        EXPECT_EQ(heap.status().peer(), 0);
        EXPECT_EQ(member.driver.open_mappings(), 0);
    });
}

}  // namespace
}  // namespace pccl::transport::nvlink
