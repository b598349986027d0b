// SPDX-License-Identifier: Apache-2.0

// Groups over each transport, and over several in one job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "csrc/runtime/runtime.h"
#include "tests/cpp/comm/blocks.h"
#include "tests/cpp/comm/ranks.h"
#include "tests/fakes/memory_store.h"

namespace pccl::comm {
namespace {

using ::testing::Each;

class TransportsTest : public ::testing::TestWithParam<transport::TransportFlags> {};

TEST_P(TransportsTest, CarryCollectivesAndMessages) {
    run_ranks({.size = 3, .transports = GetParam()}, [](CommunicatorImpl& comm) {
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
            auto comm = CommunicatorImpl::create(
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

}  // namespace
}  // namespace pccl::comm
