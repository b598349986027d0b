// SPDX-License-Identifier: Apache-2.0

// Groups of one process share heaps that are mapped already.
#include "csrc/transport/nvlink/heap_stock.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/cpp/transport/nvlink_members.h"
#include "tests/fakes/fake_cuda.h"

namespace pccl::transport::nvlink {
namespace {

using fakes::FakeCudaDriver;
using fakes::FakeGpus;

TEST(HeapTest, ALargeOneIsAnAllocationOfItsOwn) {
    run(2, [](Member& member) {
        const std::size_t bytes = 3 * HeapStock::kAllocation + 8;
        const auto heap = heap_of(member, bytes);
        ASSERT_TRUE(heap.is_ok()) << heap.status().to_string();
        EXPECT_GE((*heap)->bytes(), bytes);
        const std::size_t last = bytes - sizeof(std::uint64_t);
        const auto peer = static_cast<std::size_t>(1 - member.rank);
        word_at((*heap)->bases()[peer] + last) = static_cast<std::uint64_t>(member.rank) + 1;
        member.together.arrive_and_wait();
        EXPECT_EQ(word_at((*heap)->bases()[1 - peer] + last), peer + 1);
        member.together.arrive_and_wait();
    });
}

TEST(HeapTest, FurtherGroupsMapNothing) {
    run(3, [](Member& member) {
        auto first = heap_of(member, 1000);
        ASSERT_TRUE(first.is_ok()) << first.status().to_string();
        if (member.rank == 1) word_at((*first)->bases()[0]) = 1;
        member.together.arrive_and_wait();
        for (const char* function : {"create", "map", "import_memory"})
            member.driver.fail(function, Status::internal("a further group maps"));
        auto second = heap_of(member, 100'000);
        ASSERT_TRUE(second.is_ok()) << second.status().to_string();
        EXPECT_EQ(member.driver.open_mappings(), 3);
        for (std::size_t peer = 0; peer < 3; ++peer) {
            EXPECT_GE((*second)->bases()[peer], (*first)->bases()[peer] + (*first)->bytes());
            EXPECT_EQ(word_at((*second)->bases()[peer]), 0U);
        }
        member.together.arrive_and_wait();
        first->reset();
        word_at((*second)->bases()[2] + 8 * static_cast<std::size_t>(member.rank)) = 7;
        member.together.arrive_and_wait();
        for (std::size_t sender = 0; sender < 3; ++sender)
            EXPECT_EQ(word_at((*second)->bases()[2] + 8 * sender), 7U);
        member.together.arrive_and_wait();
        second->reset();
        EXPECT_EQ(member.driver.open_mappings(), 0);
    });
}

TEST(HeapTest, WhatOneGroupHadNoOtherGets) {
    constexpr std::size_t kQuarter = HeapStock::kAllocation / 4;
    run(2, [](Member& member) {
        const auto lasting = heap_of(member, kQuarter);
        std::set<sys::cuda::DeviceAddress> seen{(*lasting)->bases()[0]};
        for (int i = 0; i < 4; ++i) {
            const auto passing = heap_of(member, kQuarter);
            ASSERT_TRUE(passing.is_ok()) << passing.status().to_string();
            const auto base = (*passing)->bases()[0];
            EXPECT_EQ(word_at(base), 0U);
            EXPECT_EQ(word_at(base + kQuarter - 8), 0U);
            EXPECT_TRUE(seen.insert(base).second);
            member.together.arrive_and_wait();
            if (member.rank == 1) word_at(base) = word_at(base + kQuarter - 8) = 1;
            member.together.arrive_and_wait();
        }
        EXPECT_EQ(member.driver.open_mappings(), 2);
    });
}

TEST(HeapTest, WhatAPeerCannotHaveIsRefused) {
    FakeCudaDriver driver(std::make_shared<FakeGpus>());
    const auto stock = HeapStock::of(driver, 0);
    const auto claimed = stock->claim(1000);
    ASSERT_TRUE(claimed.is_ok());
    const auto memory = claimed->memory->descriptor();
    ASSERT_TRUE(memory.is_ok());
    const HeapExtent good = claimed->extent;
    EXPECT_EQ(stock->join(*memory, good)->extent.offset, good.offset);
    const auto refused = [&](const std::function<void(HeapExtent&)>& spoil) {
        HeapExtent extent = good;
        spoil(extent);
        return stock->join(*memory, extent).status().code() == StatusCode::kInvalidArgument;
    };
    EXPECT_TRUE(refused([](HeapExtent& extent) { extent.offset = 100; }));
    EXPECT_TRUE(refused([](HeapExtent& extent) { extent.offset = extent.allocated; }));
    EXPECT_TRUE(refused([](HeapExtent& extent) { extent.offset = 0 - std::uint64_t{64 << 10}; }));
    EXPECT_TRUE(refused([](HeapExtent& extent) { extent.bytes = extent.allocated + 1; }));
    EXPECT_TRUE(refused([](HeapExtent& extent) { extent.allocated *= 2; }));
}

}  // namespace
}  // namespace pccl::transport::nvlink
