// SPDX-License-Identifier: Apache-2.0

// What surrounds operations: events, operators, coordinated memory, several transports in one job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

#include "csrc/runtime/runtime.h"
#include "csrc/sys/host.h"
#include "tests/cpp/comm/blocks.h"
#include "tests/cpp/comm/ranks.h"
#include "tests/fakes/memory_store.h"

namespace pccl::comm {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

TEST(CommunicatorTest, RefusesWhatCannotBeRightBeforeSendingAnything) {
    run_ranks({.size = 2}, [](CommunicatorImpl& comm) {
        std::vector<float> values(4, 1.0F);
        const Block block = block_of(values);
        EXPECT_EQ(comm.run({.inputs = {&block, 1}}).code(), StatusCode::kInvalidArgument);
        EXPECT_EQ(comm.run({.kind = CollectiveKind::kBroadcast, .root = 2, .outputs = {&block, 1}})
                      .code(),
                  StatusCode::kInvalidArgument);
        EXPECT_EQ(
            comm.run({.op = ReduceOp::kBxor, .inputs = {&block, 1}, .outputs = {&block, 1}}).code(),
            StatusCode::kUnsupported);
        EXPECT_EQ(comm.sequence(), 0U);
        EXPECT_TRUE(comm.barrier().is_ok());
        EXPECT_EQ(comm.sequence(), 1U);
    });
}

TEST(CommunicatorTest, AMissingRankIsNamed) {
    std::atomic<bool> over{false};
    run_ranks({.size = 2}, [&over](CommunicatorImpl& comm) {
        if (comm.rank() == 1) return over.wait(false);
        const Status status = comm.barrier(std::chrono::milliseconds(100));
        over = true;
        over.notify_all();
        EXPECT_EQ(status.code(), StatusCode::kTimeout);
        EXPECT_NE(status.message().find("rank 1"), std::string::npos) << status.message();
        EXPECT_NE(status.message().find("barrier #1"), std::string::npos) << status.message();
    });
}

TEST(CommunicatorTest, OperatorSpaceIsSeenByThePeer) {
    run_ranks({.size = 2}, [](CommunicatorImpl& comm) {
        const auto mine = comm.allocate_on_all_ranks("halo", 4096);
        ASSERT_TRUE(mine.is_ok()) << mine.status().to_string();
        (*mine)[0] = static_cast<std::byte>(comm.rank() + 1);
        ASSERT_TRUE(comm.barrier().is_ok());
        const auto theirs = comm.memory().map_remote("halo", 1 - comm.rank());
        ASSERT_TRUE(theirs.is_ok()) << theirs.status().to_string();
        EXPECT_EQ((*theirs)[0], static_cast<std::byte>(2 - comm.rank()));
    });
}

TEST(CommunicatorTest, OperatorSpaceIsTheSameOnAllRanksOrNowhere) {
    run_ranks({.size = 3}, [](CommunicatorImpl& comm) {
        const std::size_t bytes = comm.rank() == 2 ? 200 : 100;
        const Status sizes = comm.allocate_on_all_ranks("halo", bytes).status();
        EXPECT_EQ(sizes.code(), StatusCode::kMismatch);
        EXPECT_EQ(sizes.peer(), 2);
        EXPECT_THAT(sizes.message(), AllOf(HasSubstr("200 bytes named \"halo\" at rank 2"),
                                           HasSubstr("100 bytes named \"halo\" at rank 0")));
        const Status names =
            comm.allocate_on_all_ranks(comm.rank() == 0 ? "left" : "right", 100).status();
        EXPECT_THAT(names.message(), AllOf(HasSubstr("named \"right\" at ranks 1, 2"),
                                           HasSubstr("named \"left\" at rank 0")));
        const Status unable =
            comm.allocate_on_all_ranks("empty", comm.rank() == 1 ? 0 : 1).status();
        EXPECT_EQ(unable.code(),
                  comm.rank() == 1 ? StatusCode::kInvalidArgument : StatusCode::kMismatch);
        EXPECT_THAT(unable.message(), HasSubstr("\"empty\" has no bytes"));
        EXPECT_THAT(comm.memory().sizes(), ::testing::IsEmpty());
        EXPECT_TRUE(comm.allocate_on_all_ranks("halo", 100).is_ok())
            << "none of them is in the way";
        EXPECT_THAT(comm.memory().sizes(), ::testing::ElementsAre(::testing::Pair("halo", 100)));
    });
}

TEST(CommunicatorTest, HeldMemoryOutlivesTheCommunicator) {
    std::array<MappedMemory, 2> theirs;
    run_ranks({.size = 2}, [&](CommunicatorImpl& comm) {
        const auto mine = comm.allocate_on_all_ranks("halo", 64).value();
        mine[63] = static_cast<std::byte>(comm.rank() + 5);
        const Rank peer = 1 - comm.rank();
        theirs.at(static_cast<std::size_t>(comm.rank())) = comm.memory().hold("halo", peer).value();
        ASSERT_TRUE(comm.barrier().is_ok());
        EXPECT_TRUE(comm.memory().release("halo").is_ok());
    });
    EXPECT_EQ(theirs[0].memory[63], std::byte{6});
    EXPECT_EQ(theirs[1].memory[63], std::byte{5});
}

/// What each rank's waits go by, once a group of so many is there.
std::vector<transport::Crowd> crowds_among(int size, transport::TransportFlags transports) {
    const auto store = std::make_shared<fakes::MemoryStore>();
    std::vector<transport::Crowd> crowds(static_cast<std::size_t>(size));
    std::vector<std::thread> ranks;
    for (Rank rank = 0; rank < size; ++rank) {
        ranks.emplace_back([&, rank] {
            const auto runtime = runtime::Runtime::create(transports).value();
            const auto comm = CommunicatorImpl::create(
                                  {.rank = rank, .size = size, .store = store, .runtime = runtime})
                                  .value();
            crowds[static_cast<std::size_t>(rank)] = runtime->waiter()->crowd();
            EXPECT_TRUE(comm->barrier().is_ok());
        });
    }
    for (auto& rank : ranks) rank.join();
    return crowds;
}

TEST(RuntimeTest, RanksOfEachTransportHaveTheirShareOfCores) {
    const auto cores = static_cast<std::uint32_t>(sys::allowed_cores().count());
    const std::uint32_t ranks = std::min(cores + 1, 17U);
    for (const auto transport : {transport::TransportKind::kShm, transport::TransportKind::kTcp}) {
        EXPECT_THAT(crowds_among(static_cast<int>(ranks), transport),
                    Each(transport::Crowd{.processes = ranks, .cores = cores}))
            << to_string(transport);
    }
}

TEST(RuntimeTest, SeveralGroupsShareOneRuntime) {
    const auto first = std::make_shared<fakes::MemoryStore>();
    const auto second = std::make_shared<fakes::MemoryStore>();
    std::vector<std::thread> ranks;
    for (Rank rank = 0; rank < 2; ++rank) {
        ranks.emplace_back([&, rank] {
            auto runtime = runtime::Runtime::create(transport::TransportKind::kShm);
            ASSERT_TRUE(runtime.is_ok());
            auto a = CommunicatorImpl::create(
                {.rank = rank, .size = 2, .store = first, .name = "a", .runtime = *runtime});
            auto b = CommunicatorImpl::create(
                {.rank = 1 - rank, .size = 2, .store = second, .name = "b", .runtime = *runtime});
            ASSERT_TRUE(a.is_ok() && b.is_ok());
            std::thread other([&] {
                for (int i = 0; i < 200; ++i) ASSERT_TRUE((*b)->barrier().is_ok());
            });
            for (int i = 0; i < 200; ++i) ASSERT_TRUE((*a)->barrier().is_ok());
            other.join();
        });
    }
    for (auto& rank : ranks) rank.join();
}

}  // namespace
}  // namespace pccl::comm
