// SPDX-License-Identifier: Apache-2.0

// How ranks wait for each other at a store.
#include "csrc/bootstrap/rendezvous_context.h"

#include <gtest/gtest.h>

#include "tests/fakes/memory_store.h"

namespace pccl::bootstrap {
namespace {

class AwaitTest : public testing::Test {
   protected:
    Result<std::string> await_key() { return await(store_, {"key", 1}, rendezvous_); }

    fakes::MemoryStore store_;
    RendezvousContext rendezvous_{.size = 2, .deadline = Deadline::after(std::chrono::seconds(20))};
};

TEST_F(AwaitTest, EndsWithTheNameOfWhoIsLost) {
    rendezvous_.lost = [](auto, Rank awaited) {
        return Status::peer_lost(awaited, "it has ended");
    };
    const auto found = await_key();
    EXPECT_EQ(found.status().code(), StatusCode::kPeerLost);
    EXPECT_EQ(found.status().peer(), 1);
}

TEST_F(AwaitTest, AnEntryOfARankThatLeftStillCounts) {
    rendezvous_.lost = [this](auto, Rank awaited) {
        EXPECT_TRUE(store_.set("key", "told").is_ok());
        return Status::peer_lost(awaited, "it has left");
    };
    const auto found = await_key();
    ASSERT_TRUE(found.is_ok()) << found.status().to_string();
    EXPECT_EQ(*found, "told");
}

TEST_F(AwaitTest, WhoIsInterruptedStopsAtOnce) {
    rendezvous_.lost = [this](auto, Rank) {
        EXPECT_TRUE(store_.set("key", "told").is_ok());
        return Status::aborted("interrupted");
    };
    EXPECT_EQ(await_key().status().code(), StatusCode::kAborted);
}

}  // namespace
}  // namespace pccl::bootstrap
