// SPDX-License-Identifier: Apache-2.0

// Operators are checked once and executed again and again.
#include "csrc/comm/operator.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/cpp/comm/blocks.h"
#include "tests/cpp/comm/ranks.h"

namespace pccl::comm {
namespace {

std::shared_ptr<CommunicatorImpl> borrowed(CommunicatorImpl& comm) {
    return {&comm, [](CommunicatorImpl*) {}};
}

TEST(OperatorTest, ExecutesAgainAndAgain) {
    run_ranks({.size = 3}, [](CommunicatorImpl& comm) {
        std::vector<float> values(100);
        const Block block = block_of(values);
        const auto sum =
            OperatorImpl::create(borrowed(comm), {.inputs = {&block, 1}, .outputs = {&block, 1}});
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
    run_ranks({.size = 2}, [](CommunicatorImpl& comm) {
        std::vector<float> mine(10, static_cast<float>(comm.rank() + 1));
        std::vector<float> all(20);
        auto gather = [&] {
            const std::string algorithm = "ring";
            const Block input = block_of(mine);
            const std::vector<Block> outputs{{block_of(all).data, 10},
                                             {block_of(all).data + 10 * sizeof(float), 10}};
            return OperatorImpl::create(borrowed(comm), {.kind = CollectiveKind::kAllGather,
                                                         .inputs = {&input, 1},
                                                         .outputs = outputs,
                                                         .algorithm = algorithm});
        }();
        ASSERT_TRUE(gather.is_ok()) << gather.status().to_string();
        const OperatorImpl moved = std::move(*gather);
        EXPECT_EQ(moved.collective().algorithm, "ring");
        ASSERT_TRUE(moved.run().is_ok());
        EXPECT_EQ(all.front(), 1.0F);
        EXPECT_EQ(all.back(), 2.0F);
    });
}

TEST(OperatorTest, IsCheckedBeforeAnythingIsSent) {
    run_ranks({.size = 2}, [](CommunicatorImpl& comm) {
        std::vector<float> values(10);
        const Block block = block_of(values);
        const auto refusal = [&](Collective collective) {
            collective.inputs = {&block, 1};
            collective.outputs = {&block, 1};
            return OperatorImpl::create(borrowed(comm), collective).status();
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

}  // namespace
}  // namespace pccl::comm
