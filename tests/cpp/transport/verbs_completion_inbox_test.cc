// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <thread>

#include "csrc/transport/verbs/completion_queue.h"

namespace pccl::transport::verbs {
namespace {

WorkCompletion completion_of(std::uint64_t id) {
    return {.id = id,
            .immediate = static_cast<std::uint32_t>(id * 3),
            .bytes = static_cast<std::uint32_t>(id * 7)};
}

TEST(CompletionInboxTest, CompletionsComeOutInTheirOrder) {
    CompletionInbox inbox(4);
    WorkCompletion taken;
    EXPECT_TRUE(inbox.is_empty());
    EXPECT_FALSE(inbox.pop(taken));
    for (std::uint64_t id = 1; id <= 4; ++id) EXPECT_TRUE(inbox.push(completion_of(id)));
    EXPECT_FALSE(inbox.is_empty());
    EXPECT_FALSE(inbox.push(completion_of(5))) << "it is full";
    for (std::uint64_t id = 1; id <= 4; ++id) {
        ASSERT_TRUE(inbox.pop(taken));
        EXPECT_EQ(taken.id, id);
    }
    EXPECT_TRUE(inbox.is_empty());
    EXPECT_TRUE(inbox.push(completion_of(6))) << "it has room again";
}

TEST(CompletionInboxTest, ItHoldsAtLeastAsManyAsItWasMadeFor) {
    for (const std::size_t most : {1U, 3U, 192U, 257U}) {
        CompletionInbox inbox(most);
        for (std::size_t i = 0; i < most; ++i) EXPECT_TRUE(inbox.push(completion_of(i))) << most;
    }
}

TEST(CompletionInboxTest, TwoThreadsLoseNothing) {
    constexpr std::uint64_t kCount = 300'000;
    CompletionInbox inbox(8);
    std::thread poller([&] {
        for (std::uint64_t id = 0; id < kCount; ++id)
            while (!inbox.push(completion_of(id))) std::this_thread::yield();
    });
    std::uint64_t wrong = 0;
    for (std::uint64_t id = 0; id < kCount; ++id) {
        WorkCompletion taken;
        while (!inbox.pop(taken)) std::this_thread::yield();
        const WorkCompletion expected = completion_of(id);
        if (taken.id != id || taken.immediate != expected.immediate ||
            taken.bytes != expected.bytes)
            ++wrong;
    }
    poller.join();
    EXPECT_EQ(wrong, 0U);
    EXPECT_TRUE(inbox.is_empty());
}

}  // namespace
}  // namespace pccl::transport::verbs
