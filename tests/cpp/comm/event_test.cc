// SPDX-License-Identifier: Apache-2.0

// Events of operations, and their callbacks.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/cpp/comm/blocks.h"
#include "tests/cpp/comm/ranks.h"

namespace pccl::comm {
namespace {

TEST(EventTest, CallbacksRunOnceWithTheOutcome) {
    run_ranks({.size = 2}, [](CommunicatorImpl& comm) {
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
    run_ranks({.size = 2}, [&](CommunicatorImpl& comm) {
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
    run_ranks({.size = 2}, [](CommunicatorImpl& comm) {
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

}  // namespace
}  // namespace pccl::comm
