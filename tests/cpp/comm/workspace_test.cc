// SPDX-License-Identifier: Apache-2.0

// Workspaces of all ranks, by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "csrc/comm/memory_context.h"
#include "csrc/transport/shm/peer_memory.h"
#include "tests/cpp/comm/filled_memory.h"
#include "tests/fakes/deadlines.h"
#include "tests/fakes/memory_store.h"

namespace pccl::comm {
namespace {

using fakes::test_deadline;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(MemoryContextTest, DifferentSizesAreAMismatch) {
    const auto store = std::make_shared<fakes::MemoryStore>();
    MemoryContext zero({.rank = 0, .size = 2, .store = store});
    MemoryContext one({.rank = 1, .size = 2, .store = store});
    ASSERT_TRUE(zero.allocate_workspace("halo", 100).is_ok());
    ASSERT_TRUE(one.allocate_workspace("halo", 200).is_ok());
    const Status status = zero.wait_workspace("halo", test_deadline());
    EXPECT_EQ(status.code(), StatusCode::kMismatch);
    EXPECT_EQ(status.peer(), 1);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("200"), HasSubstr("100")));
}

TEST(MemoryContextTest, AReleasedNameStartsAfresh) {
    const auto store = std::make_shared<fakes::MemoryStore>();
    MemoryContext zero({.rank = 0, .size = 2, .store = store});
    MemoryContext one({.rank = 1, .size = 2, .store = store});
    fill(zero.allocate_workspace("w", 64).value(), 1);
    ASSERT_TRUE(one.allocate_workspace("w", 64).is_ok());
    ASSERT_TRUE(one.wait_workspace("w", test_deadline()).is_ok());
    const auto view = one.map_remote("w", 0).value();
    ASSERT_TRUE(zero.release("w").is_ok());
    EXPECT_TRUE(holds(view, 1)) << "a peer's view must survive the owner's release";
    ASSERT_TRUE(one.release("w").is_ok());

    ASSERT_TRUE(one.allocate_workspace("w", 32).is_ok());
    EXPECT_EQ(one.wait_workspace("w", shortly()).code(), StatusCode::kTimeout);
    EXPECT_TRUE(holds(zero.allocate_workspace("w", 32).value(), 0));
    EXPECT_TRUE(one.wait_workspace("w", test_deadline()).is_ok());
    EXPECT_EQ(one.map_remote("w", 0).value().size(), 32U);
}

/// A workspace is what a link of one-sided access takes.
TEST(MemoryContextTest, AWorkspaceIsRegisteredUntilItIsReleased) {
    const auto store = std::make_shared<fakes::MemoryStore>();
    MemoryContext zero({.rank = 0, .size = 2, .store = store});
    MemoryContext one({.rank = 1, .size = 2, .store = store});
    ASSERT_TRUE(zero.allocate_workspace("w", 64).is_ok());
    ASSERT_TRUE(one.allocate_workspace("w", 64).is_ok());
    ASSERT_TRUE(one.wait_workspace("w", test_deadline()).is_ok());
    const abi::MemoryDescriptor theirs = one.remote_memory("w", 0).value();
    const auto open = transport::shm::PeerMemory::open(
        theirs, ::getpid(), std::make_shared<transport::shm::GpuMemories>());
    ASSERT_TRUE(open.is_ok()) << open.status().to_string();
    EXPECT_TRUE((*open)->is_open());
    ASSERT_TRUE(zero.release("w").is_ok());
    EXPECT_FALSE((*open)->is_open());
}

TEST(MemoryContextTest, DamagedDescriptorsNameTheRank) {
    const auto store = std::make_shared<fakes::MemoryStore>();
    MemoryContext zero({.rank = 0, .size = 2, .store = store});
    ASSERT_TRUE(zero.allocate_workspace("w", 64).is_ok());
    ASSERT_TRUE(store->set("memory/w/0/1", "no descriptor").is_ok());
    const Status status = zero.wait_workspace("w", test_deadline());
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("\"w\""), HasSubstr("rank 1")));
}

}  // namespace
}  // namespace pccl::comm
