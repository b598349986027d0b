// SPDX-License-Identifier: Apache-2.0

// Ranks that give up a collective and use its memory for something else at once. Whoever reads that
// memory directly must notice.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "csrc/base/ids.h"
#include "tests/cpp/comm/parts.h"
#include "tests/cpp/comm/ranks.h"

namespace pccl::comm {
namespace {

using namespace std::chrono_literals;

constexpr Rank kVictim = 1;
constexpr std::size_t kBeyondBoard =
    256 * kKiB;  // of a block: more than goes over shared memory all the same

bool comes_from_root(CollectiveKind kind) {
    return kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kScatter;
}

bool goes_to_root(CollectiveKind kind) {
    return kind == CollectiveKind::kReduce || kind == CollectiveKind::kGather;
}

/// A rank's call of a collective to which the victim gives something.
class Call {
   public:
    Call(CollectiveKind kind, const CommunicatorImpl& comm) : kind_(kind) {
        const auto blocks = [&](schedule::Buffer side, bool only_root) {
            const bool is_here = !only_root || comm.rank() == root();
            return is_here ? schedule::blocks(kind, side, comm.size()) : 0;
        };
        fill(inputs_, given_, blocks(schedule::Buffer::kInput, comes_from_root(kind)));
        fill(outputs_, taken_, blocks(schedule::Buffer::kOutput, goes_to_root(kind)));
    }

    [[nodiscard]] Collective collective() const {
        return {.kind = kind_,
                .type = DataType::kInt32,
                .root = root(),
                .inputs = inputs_,
                .outputs = outputs_};
    }
    void use_memory_for_something_else() { std::fill(given_.begin(), given_.end(), -1); }

   private:
    [[nodiscard]] Rank root() const { return comes_from_root(kind_) ? kVictim : 0; }
    static void fill(std::vector<Block>& blocks, Values& values, int number) {
        values.assign(kBeyondBoard * static_cast<std::size_t>(number), 1);
        for (std::size_t i = 0; i < static_cast<std::size_t>(number); ++i)
            blocks.push_back(
                {reinterpret_cast<std::byte*>(values.data() + i * kBeyondBoard), kBeyondBoard});
    }

    CollectiveKind kind_;
    Values given_;
    Values taken_;
    std::vector<Block> inputs_;
    std::vector<Block> outputs_;
};

class GivingUpTest : public ::testing::TestWithParam<std::tuple<CollectiveKind, int>> {};

TEST_P(GivingUpTest, WhoReadsTheMemoryOfOneThatHasTimedOutNotices) {
    std::atomic<bool> has_given_up{false};
    const auto [kind, size] = GetParam();
    const std::string algorithm = std::string(schedule::to_string(kind)) + "=shm_direct";
    run_ranks({.size = size, .algorithm = algorithm}, [&, kind = kind](CommunicatorImpl& comm) {
        Call call(kind, comm);
        if (comm.rank() == kVictim) {
            EXPECT_EQ(comm.run(call.collective(), 50ms).code(), StatusCode::kTimeout);
            call.use_memory_for_something_else();
            has_given_up.store(true);
            has_given_up.notify_all();
            return;
        }
        has_given_up.wait(false);
        const Status status = comm.run(call.collective());
        ASSERT_FALSE(status.is_ok());
        // It waited for one of the two in vain, who is to blame for the other.
        if (status.code() == StatusCode::kTimeout)
            EXPECT_NE(status.peer(), comm.rank()) << status.to_string();
        else
            EXPECT_EQ(status.peer(), kVictim) << status.to_string();
    });
}

INSTANTIATE_TEST_SUITE_P(
    ShmDirect, GivingUpTest,
    ::testing::Combine(::testing::Values(CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                         CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
                                         CollectiveKind::kBroadcast, CollectiveKind::kReduce,
                                         CollectiveKind::kGather, CollectiveKind::kScatter),
                       ::testing::Values(2, 3)),
    [](const auto& kind_and_size) {
        return std::string(schedule::to_string(std::get<0>(kind_and_size.param))) + "_" +
               std::to_string(std::get<1>(kind_and_size.param));
    });

/// Ending thousands of operations takes milliseconds, in which the first has ended and others have
/// not.
TEST(GivingUpOrderTest, ARankThatGivesUpReportsItBeforeItsFirstOperationEnds) {
    constexpr int kBehind = 20'000;
    std::atomic<bool> has_ended{false};
    run_ranks({.size = 2, .algorithm = "gather=shm_direct"}, [&](CommunicatorImpl& comm) {
        Call call(CollectiveKind::kGather, comm);
        if (comm.rank() != kVictim) {
            while (!has_ended.load()) std::this_thread::yield();
            const Status status = comm.run(call.collective());
            EXPECT_EQ(status.code(), StatusCode::kPeerLost) << status.to_string();
            return;
        }
        const Event gather = comm.submit(call.collective()).value();
        std::byte token{};
        const Block block{&token, 1};
        for (int i = 0; i < kBehind; ++i)
            ASSERT_TRUE(comm.submit({.kind = CollectiveKind::kAllReduce,
                                     .type = DataType::kUint8,
                                     .op = ReduceOp::kMax,
                                     .inputs = {&block, 1},
                                     .outputs = {&block, 1}})
                            .is_ok());
        std::thread caller([&] {
            while (!gather.is_done()) std::this_thread::yield();
            call.use_memory_for_something_else();
            has_ended.store(true);
        });
        comm.abort(Status::aborted("enough"));
        caller.join();
    });
}

}  // namespace
}  // namespace pccl::comm
