// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/memory_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include <pccl/store.h>
#include "csrc/base/scope_exit.h"
#include "tests/cpp/comm/filled_memory.h"
#include "tests/fakes/deadlines.h"
#include "tests/fakes/memory_store.h"

namespace pccl::comm {
namespace {

using fakes::test_deadline;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::size_t kWorkspaceBytes = 3 * 4096 + 5;

/// A barrier from what the store offers.
void meet_in_store(Store& store, const std::string& key, int ranks) {
    if (store.add(key, 1).value() == ranks) {
        ASSERT_TRUE(store.set(key + "/open", "").is_ok());
    }
    ASSERT_TRUE(store.get(key + "/open", test_deadline()).is_ok());
}

/// Every rank writes its number into its own part and reads it from all others'.
void exchange_halos(MemoryContext& memory, Store& store, Rank rank, int ranks) {
    auto mine = memory.allocate_workspace("halo", kWorkspaceBytes);
    ASSERT_TRUE(mine.is_ok()) << mine.status().to_string();
    EXPECT_THAT(*mine, Each(std::byte{0}));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mine->data()) % 4096, 0U);
    fill(*mine, rank + 1);
    const Status complete = memory.wait_workspace("halo", test_deadline());
    ASSERT_TRUE(complete.is_ok()) << complete.to_string();
    meet_in_store(store, "written", ranks);
    for (Rank peer = 0; peer < ranks; ++peer) {
        const auto where = memory.remote_memory("halo", peer);
        ASSERT_TRUE(where.is_ok());
        EXPECT_EQ(where->bytes, kWorkspaceBytes);
        const auto theirs = memory.map_remote("halo", peer);
        ASSERT_TRUE(theirs.is_ok()) << theirs.status().to_string();
        EXPECT_EQ(theirs->size(), kWorkspaceBytes);
        EXPECT_TRUE(holds(*theirs, peer + 1));
        EXPECT_EQ(memory.map_remote("halo", peer)->data(), theirs->data());
    }
    meet_in_store(store, "read", ranks);
    // Each writes one byte of its right neighbour's part.
    memory.map_remote("halo", (rank + 1) % ranks).value()[7] = std::byte{0x77};
    meet_in_store(store, "answered", ranks);
    EXPECT_EQ((*mine)[7], std::byte{0x77});
}

void run_threads(int ranks, const std::function<void(MemoryContext&, Store&, Rank)>& body) {
    const auto store = std::make_shared<fakes::MemoryStore>();
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < ranks; ++rank)
        threads.emplace_back([&, rank] {
            MemoryContext memory({.rank = rank, .size = ranks, .store = store});
            body(memory, *store, rank);
        });
    for (auto& thread : threads) thread.join();
}

TEST(MemoryContextTest, ThreadsSeeEachOthersWorkspaces) {
    constexpr int kRanks = 3;
    run_threads(kRanks, [](MemoryContext& memory, Store& store, Rank rank) {
        exchange_halos(memory, store, rank, kRanks);
    });
}

TEST(MemoryContextTest, ProcessesSeeEachOthersWorkspaces) {
    constexpr int kRanks = 3;
    const std::string path = ::testing::TempDir() + "pccl-memory-" + std::to_string(::getpid());
    const ScopeExit cleanup([&] { ::unlink(path.c_str()); });
    std::vector<pid_t> children;
    for (Rank rank = 0; rank < kRanks; ++rank) {
        const pid_t child = ::fork();
        if (child == 0) {
            const auto store = open_store("file://" + path, rank, kRanks, test_deadline()).value();
            MemoryContext memory({.rank = rank, .size = kRanks, .store = store});
            exchange_halos(memory, *store, rank, kRanks);
            meet_in_store(*store, "done", kRanks);
            ::_exit(::testing::Test::HasFailure() ? 1 : 0);
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

TEST(MemoryContextTest, WaitingNamesTheMissingRanks) {
    const auto store = std::make_shared<fakes::MemoryStore>();
    MemoryContext zero({.rank = 0, .size = 4, .store = store});
    MemoryContext two({.rank = 2, .size = 4, .store = store});
    ASSERT_TRUE(zero.allocate_workspace("halo", kWorkspaceBytes).is_ok());
    ASSERT_TRUE(two.allocate_workspace("halo", kWorkspaceBytes).is_ok());
    const Status status = zero.wait_workspace("halo", shortly());
    EXPECT_EQ(status.code(), StatusCode::kTimeout);
    EXPECT_EQ(status.peer(), 1);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("\"halo\""), HasSubstr("ranks 1, 3 of 4")));
    EXPECT_EQ(zero.remote_memory("halo", 2).status().code(), StatusCode::kUnavailable);
}

TEST(MemoryContextTest, MisuseIsExplained) {
    MemoryContext memory{MemoryContextOptions()};
    EXPECT_EQ(memory.allocate_workspace("", 1).status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(memory.allocate_workspace("pccl/lib", 1).status().code(),
              StatusCode::kInvalidArgument);
    EXPECT_EQ(memory.allocate_workspace("w", 0).status().code(), StatusCode::kInvalidArgument);
    ASSERT_TRUE(memory.allocate_workspace("w", 1).is_ok());
    EXPECT_THAT(memory.allocate_workspace("w", 1).status().message(),
                HasSubstr("release it first"));
    EXPECT_EQ(memory.wait_workspace("x", test_deadline()).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(memory.release("x").code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(memory.remote_memory("w", 1).status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(memory.allocate_workspace("huge", std::size_t{1} << 62).status().message(),
                HasSubstr("bytes"));
}

TEST(MemoryContextTest, AGroupOfOneNeedsNoStore) {
    MemoryContext memory{MemoryContextOptions()};
    const auto mine = memory.allocate_workspace("w", 10).value();
    ASSERT_TRUE(memory.wait_workspace("w", shortly()).is_ok());
    EXPECT_EQ(memory.map_remote("w", 0).value().data(), mine.data());
    EXPECT_TRUE(memory.release("w").is_ok());
}

}  // namespace
}  // namespace pccl::comm
