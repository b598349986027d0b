// SPDX-License-Identifier: Apache-2.0

// Groups in a loopback fabric find out who is to blame, as groups of real processes do: its control
// planes carry their questions, and meet its deaths.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "csrc/comm/communicator.h"
#include "csrc/runtime/runtime.h"
#include "tests/fakes/deadlines.h"
#include "tests/fakes/loopback/loopback_fabric.h"
#include "tests/fakes/memory_store.h"

namespace pccl::comm {
namespace {

using fakes::test_deadline;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using transport::loopback::LoopbackFabric;

constexpr int kDiagnosedRanks = 4;
constexpr Rank kAbsent = 2;

class LoopbackDiagnosisTest : public ::testing::Test {
   protected:
    void SetUp() override {
        each([this](Rank rank) { ranks_[index(rank)] = join(rank); });
    }

    static std::size_t index(Rank rank) { return static_cast<std::size_t>(rank); }
    CommunicatorImpl& at(Rank rank) { return *ranks_[index(rank)]; }
    void kill(Rank rank) { fabric_->kill(places_[index(rank)]); }
    static void each(const std::function<void(Rank)>& body) {
        std::vector<std::thread> threads;
        for (Rank rank = 0; rank < kDiagnosedRanks; ++rank) threads.emplace_back(body, rank);
        for (auto& thread : threads) thread.join();
    }
    Status all_reduce(Rank rank, std::chrono::milliseconds timeout) {
        std::array<std::byte, 64> data{};
        const Block block{data.data(), data.size()};
        return at(rank).run(
            {.type = DataType::kUint8, .inputs = {&block, 1}, .outputs = {&block, 1}}, timeout);
    }

   private:
    std::shared_ptr<CommunicatorImpl> join(Rank rank) {
        std::shared_ptr<transport::Waiter> waiter(transport::Waiter::create().value());
        auto member = std::move(fabric_->join(*waiter).value());
        places_[index(rank)] = std::stoi(member.control->address().doors.front());
        runtime::TransportNetwork network{.control = std::move(member.control), .transports = {}};
        network.transports.push_back(std::move(member.transport));
        auto runtime = runtime::Runtime::with(std::move(waiter), std::move(network)).value();
        return CommunicatorImpl::create({.rank = rank,
                                         .size = kDiagnosedRanks,
                                         .store = store_,
                                         .runtime = std::move(runtime)})
            .value();
    }

    const std::shared_ptr<LoopbackFabric> fabric_ = LoopbackFabric::create();
    const std::shared_ptr<Store> store_ = std::make_shared<fakes::MemoryStore>();
    std::array<int, kDiagnosedRanks> places_{};  // processes of the fabric, by rank
    std::array<std::shared_ptr<CommunicatorImpl>, kDiagnosedRanks> ranks_;
};

TEST_F(LoopbackDiagnosisTest, ARankThatDoesNotCallIsNamed) {
    each([this](Rank rank) {
        if (rank == kAbsent) return;
        const Status status = all_reduce(rank, std::chrono::seconds(3));
        EXPECT_EQ(status.code(), StatusCode::kTimeout) << status.to_string();
        EXPECT_EQ(status.peer(), kAbsent) << status.to_string();
        // The latter where rank 2 answers too late to say so, on a busy machine.
        EXPECT_THAT(status.message(), AnyOf(HasSubstr("rank 2 has not called it"),
                                            HasSubstr("timed out waiting for rank 2")));
    });
}

TEST_F(LoopbackDiagnosisTest, AProcessThatIsKilledIsLostForAll) {
    EXPECT_TRUE(at(0).query(kAbsent, test_deadline()).is_ok());
    kill(kAbsent);
    const auto answer = at(0).query(kAbsent, test_deadline());
    EXPECT_EQ(answer.status().code(), StatusCode::kPeerLost) << answer.status().to_string();
    EXPECT_EQ(answer.status().peer(), kAbsent);
    each([this](Rank rank) {
        if (rank == kAbsent) return;
        const Status status = all_reduce(rank, std::chrono::seconds(20));
        EXPECT_EQ(status.code(), StatusCode::kPeerLost) << status.to_string();
        EXPECT_EQ(status.peer(), kAbsent) << status.to_string();
    });
}

}  // namespace
}  // namespace pccl::comm
