// SPDX-License-Identifier: Apache-2.0

// What surrounds operations: events, operators, coordinated memory, several transports in one job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "csrc/comm/operator.h"
#include "csrc/runtime/runtime.h"
#include "csrc/sys/host.h"
#include "tests/cpp/comm/ranks.h"
#include "tests/fakes/memory_store.h"

namespace pccl::comm {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

Block block_of(std::vector<float>& values) {
    return {reinterpret_cast<std::byte*>(values.data()), values.size()};
}

std::shared_ptr<Communicator> borrowed(Communicator& comm) {
    return {&comm, [](Communicator*) {}};
}

TEST(OperatorTest, ExecutesAgainAndAgain) {
    run_ranks({.size = 3}, [](Communicator& comm) {
        std::vector<float> values(100);
        const Block block = block_of(values);
        const auto sum =
            Operator::create(borrowed(comm), {.inputs = {&block, 1}, .outputs = {&block, 1}});
        ASSERT_TRUE(sum.is_ok()) << sum.status().to_string();
        for (int round = 1; round <= 3; ++round) {
            values.assign(100, static_cast<float>(round));
            const auto event = sum->execute();
            ASSERT_TRUE(event.is_ok());
            EXPECT_TRUE((*event).flush().is_ok());
            EXPECT_TRUE((*event).wait().is_ok());
            const Timing timing = (*event).record();
            EXPECT_LE(timing.issued, timing.started);
            EXPECT_LE(timing.started, timing.finished);
            EXPECT_EQ(values, std::vector<float>(100, 3.0F * static_cast<float>(round)));
            ASSERT_TRUE(sum->run().is_ok());
            EXPECT_EQ(values, std::vector<float>(100, 9.0F * static_cast<float>(round)));
        }
    });
}

TEST(OperatorTest, KeepsWhatItWasMadeOf) {
    run_ranks({.size = 2}, [](Communicator& comm) {
        std::vector<float> mine(10, static_cast<float>(comm.rank() + 1));
        std::vector<float> all(20);
        auto gather = [&] {
            const std::string algorithm = "ring";
            const Block input = block_of(mine);
            const std::vector<Block> outputs{{block_of(all).data, 10},
                                             {block_of(all).data + 10 * sizeof(float), 10}};
            return Operator::create(borrowed(comm), {.kind = CollectiveKind::kAllGather,
                                                     .inputs = {&input, 1},
                                                     .outputs = outputs,
                                                     .algorithm = algorithm});
        }();
        ASSERT_TRUE(gather.is_ok()) << gather.status().to_string();
        const Operator moved = std::move(*gather);
        EXPECT_EQ(moved.collective().algorithm, "ring");
        ASSERT_TRUE(moved.run().is_ok());
        EXPECT_EQ(all.front(), 1.0F);
        EXPECT_EQ(all.back(), 2.0F);
    });
}

TEST(OperatorTest, IsCheckedBeforeAnythingIsSent) {
    run_ranks({.size = 2}, [](Communicator& comm) {
        std::vector<float> values(10);
        const Block block = block_of(values);
        const auto refusal = [&](Collective collective) {
            collective.inputs = {&block, 1};
            collective.outputs = {&block, 1};
            return Operator::create(borrowed(comm), collective).status();
        };
        EXPECT_EQ(refusal({.kind = CollectiveKind::kBroadcast, .root = 2}).code(),
                  StatusCode::kInvalidArgument);
        EXPECT_EQ(refusal({.op = ReduceOp::kBand}).code(), StatusCode::kUnsupported);
        EXPECT_EQ(refusal({.algorithm = "no_such"}).code(), StatusCode::kInvalidArgument);
        EXPECT_EQ(comm.sequence(), 0U);
        comm.abort(Status::aborted("enough"));
        EXPECT_EQ(refusal({}).code(), StatusCode::kAborted);
    });
}

TEST(EventTest, CallbacksRunOnceWithTheOutcome) {
    run_ranks({.size = 2}, [](Communicator& comm) {
        std::vector<float> values(1000, 1.0F);
        const Block block = block_of(values);
        std::atomic<int> calls{0};
        auto event = comm.submit({.inputs = {&block, 1}, .outputs = {&block, 1}});
        ASSERT_TRUE(event.is_ok());
        (*event).on_done([&](const Status& status) { calls += status.is_ok() ? 1 : 100; });
        EXPECT_TRUE((*event).wait().is_ok());
        EXPECT_TRUE(comm.barrier().is_ok());
        while (calls == 0) std::this_thread::yield();
        (*event).on_done([&](const Status&) { calls += 10; });
        EXPECT_EQ(calls, 11);
    });
}

TEST(EventTest, ShutdownWaitsForCallbacksOfOtherThreads) {
    std::atomic<bool> is_registered{false};
    std::atomic<bool> has_seen_it{false};
    run_ranks({.size = 2}, [&](Communicator& comm) {
        std::vector<float> values(1000, 1.0F);
        const Block block = block_of(values);
        if (comm.rank() == 1) {
            is_registered.wait(false);
            EXPECT_TRUE(comm.run({.inputs = {&block, 1}, .outputs = {&block, 1}}).is_ok());
            return has_seen_it.wait(false);
        }
        auto event = comm.submit({.inputs = {&block, 1}, .outputs = {&block, 1}});
        ASSERT_TRUE(event.is_ok());
        std::atomic<bool> runs{false};
        std::atomic<bool> has_run{false};
        (*event).on_done([&](const Status&) {
            runs = true;
            runs.notify_all();
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            has_run = true;
        });
        is_registered = true;
        is_registered.notify_all();
        runs.wait(false);
        EXPECT_TRUE(comm.shutdown().is_ok());
        EXPECT_TRUE(has_run);
        has_seen_it = true;
        has_seen_it.notify_all();
    });
}

TEST(EventTest, ACallbackMayShutDown) {
    run_ranks({.size = 2}, [](Communicator& comm) {
        std::vector<float> values(1000, 1.0F);
        const Block block = block_of(values);
        std::atomic<bool> is_down{false};
        auto event = comm.submit({.inputs = {&block, 1}, .outputs = {&block, 1}});
        ASSERT_TRUE(event.is_ok());
        (*event).on_done([&](const Status& status) {
            EXPECT_TRUE(status.is_ok());
            static_cast<void>(comm.shutdown());
            is_down = true;
            is_down.notify_all();
        });
        is_down.wait(false);
    });
}

TEST(CommunicatorTest, RefusesWhatCannotBeRightBeforeSendingAnything) {
    run_ranks({.size = 2}, [](Communicator& comm) {
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
    run_ranks({.size = 2}, [&over](Communicator& comm) {
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
    run_ranks({.size = 2}, [](Communicator& comm) {
        const auto mine = comm.get_operator_space("halo", 4096);
        ASSERT_TRUE(mine.is_ok()) << mine.status().to_string();
        (*mine)[0] = static_cast<std::byte>(comm.rank() + 1);
        ASSERT_TRUE(comm.barrier().is_ok());
        const auto theirs = comm.memory().map_remote("halo", 1 - comm.rank());
        ASSERT_TRUE(theirs.is_ok()) << theirs.status().to_string();
        EXPECT_EQ((*theirs)[0], static_cast<std::byte>(2 - comm.rank()));
    });
}

TEST(CommunicatorTest, OperatorSpaceIsTheSameOnAllRanksOrNowhere) {
    run_ranks({.size = 3}, [](Communicator& comm) {
        const std::size_t bytes = comm.rank() == 2 ? 200 : 100;
        const Status sizes = comm.get_operator_space("halo", bytes).status();
        EXPECT_EQ(sizes.code(), StatusCode::kMismatch);
        EXPECT_EQ(sizes.peer(), 2);
        EXPECT_THAT(sizes.message(), AllOf(HasSubstr("200 bytes named \"halo\" at rank 2"),
                                           HasSubstr("100 bytes named \"halo\" at rank 0")));
        const Status names =
            comm.get_operator_space(comm.rank() == 0 ? "left" : "right", 100).status();
        EXPECT_THAT(names.message(), AllOf(HasSubstr("named \"right\" at ranks 1, 2"),
                                           HasSubstr("named \"left\" at rank 0")));
        const Status unable = comm.get_operator_space("empty", comm.rank() == 1 ? 0 : 1).status();
        EXPECT_EQ(unable.code(),
                  comm.rank() == 1 ? StatusCode::kInvalidArgument : StatusCode::kMismatch);
        EXPECT_THAT(unable.message(), HasSubstr("\"empty\" has no bytes"));
        EXPECT_THAT(comm.memory().sizes(), ::testing::IsEmpty());
        EXPECT_TRUE(comm.get_operator_space("halo", 100).is_ok()) << "none of them is in the way";
        EXPECT_THAT(comm.memory().sizes(), ::testing::ElementsAre(::testing::Pair("halo", 100)));
    });
}

TEST(CommunicatorTest, HeldMemoryOutlivesTheCommunicator) {
    std::array<HeldMemory, 2> theirs;
    run_ranks({.size = 2}, [&](Communicator& comm) {
        const auto mine = comm.get_operator_space("halo", 64).value();
        mine[63] = static_cast<std::byte>(comm.rank() + 5);
        const Rank peer = 1 - comm.rank();
        theirs.at(static_cast<std::size_t>(comm.rank())) = comm.memory().hold("halo", peer).value();
        ASSERT_TRUE(comm.barrier().is_ok());
        EXPECT_TRUE(comm.memory().release("halo").is_ok());
    });
    EXPECT_EQ(theirs[0].memory[63], std::byte{6});
    EXPECT_EQ(theirs[1].memory[63], std::byte{5});
}

class TransportsTest : public ::testing::TestWithParam<transport::TransportFlags> {};

TEST_P(TransportsTest, CarryCollectivesAndMessages) {
    run_ranks({.size = 3, .transports = GetParam()}, [](Communicator& comm) {
        for (const std::size_t count : {std::size_t{1}, std::size_t{300'000}}) {
            std::vector<float> values(count, static_cast<float>(comm.rank()));
            const Block block = block_of(values);
            const Status status = comm.run({.inputs = {&block, 1}, .outputs = {&block, 1}});
            ASSERT_TRUE(status.is_ok()) << status.to_string();
            EXPECT_EQ(values, std::vector<float>(count, 3.0F));
        }
        std::byte token{42};
        const Rank next = (comm.rank() + 1) % 3;
        const Rank previous = (comm.rank() + 2) % 3;
        std::byte got{};
        const auto sent = comm.send(next, 0, {&token, 1});
        const auto received = comm.receive(previous, 0, {&got, 1});
        ASSERT_TRUE(sent.is_ok() && received.is_ok());
        EXPECT_TRUE((*sent).wait().is_ok());
        EXPECT_TRUE((*received).wait().is_ok());
        EXPECT_EQ(got, token);
    });
}

INSTANTIATE_TEST_SUITE_P(Each, TransportsTest,
                         ::testing::Values(transport::TransportKind::kShm,
                                           transport::TransportKind::kTcp,
                                           transport::TransportFlags::all()),
                         [](const auto& named) {
                             return named.param == transport::TransportFlags::all()
                                        ? "all"
                                        : named.param.to_string();
                         });

TEST(TransportsTest, SomePairsOverShmAndOthersOverTcpInOneJob) {
    const auto store = std::make_shared<fakes::MemoryStore>();
    std::vector<std::thread> ranks;
    for (Rank rank = 0; rank < 3; ++rank) {
        ranks.emplace_back([&, rank] {
            // Rank 2 stands for another host: it has no shared memory with the others.
            const auto allowed = rank == 2
                                     ? transport::TransportFlags(transport::TransportKind::kTcp)
                                     : transport::TransportFlags::all();
            auto runtime = runtime::Runtime::create(allowed);
            ASSERT_TRUE(runtime.is_ok());
            auto comm = Communicator::create(
                {.rank = rank, .size = 3, .store = store, .runtime = *runtime});
            ASSERT_TRUE(comm.is_ok()) << comm.status().to_string();
            std::vector<float> values(200'000, 1.0F);
            const Block block = block_of(values);
            const Status status = (*comm)->run({.inputs = {&block, 1}, .outputs = {&block, 1}});
            ASSERT_TRUE(status.is_ok()) << status.to_string();
            EXPECT_EQ(values, std::vector<float>(200'000, 3.0F));
            EXPECT_TRUE((*comm)->barrier().is_ok());
        });
    }
    for (auto& rank : ranks) rank.join();
}

/// What each rank's waits go by, once a group of so many is there.
std::vector<transport::Crowd> crowds_among(int size, transport::TransportFlags transports) {
    const auto store = std::make_shared<fakes::MemoryStore>();
    std::vector<transport::Crowd> crowds(static_cast<std::size_t>(size));
    std::vector<std::thread> ranks;
    for (Rank rank = 0; rank < size; ++rank) {
        ranks.emplace_back([&, rank] {
            const auto runtime = runtime::Runtime::create(transports).value();
            const auto comm = Communicator::create(
                                  {.rank = rank, .size = size, .store = store, .runtime = runtime})
                                  .value();
            crowds[static_cast<std::size_t>(rank)] = runtime->waiter()->crowd();
            EXPECT_TRUE(comm->barrier().is_ok());
        });
    }
    for (auto& rank : ranks) rank.join();
    return crowds;
}

TEST(RuntimeTest, RanksOfEachTransportKnowHowTheyShareCores) {
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
            auto a = Communicator::create(
                {.rank = rank, .size = 2, .store = first, .name = "a", .runtime = *runtime});
            auto b = Communicator::create(
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
