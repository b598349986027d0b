// SPDX-License-Identifier: Apache-2.0

// The numbers of a FIFO's messages, which wrap: programs on states that tests have prepared.

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "csrc/device/launch/preferences.h"
#include "csrc/device/programs/device_programs.h"
#include "csrc/schedule/generators/generators.h"
#include "tests/cpp/emulated/bare_ranks.h"
#include "tests/fakes/fake_cuda.h"

namespace pccl::kernels {
namespace {

constexpr int kNumberedRanks = 2;

/// Of one rank, on a GPU of its own.
class ProgramRank {
   public:
    explicit ProgramRank(int rank)
        : driver_(std::make_shared<fakes::FakeGpus>()),
          programs_({.driver = driver_,
                     .rank = rank,
                     .size = kNumberedRanks,
                     .ll128 = abi::LL128Trial::kWhole}) {}

    /// A sum over both ranks, in place.
    [[nodiscard]] ProgramLaunch prepare(std::vector<std::int32_t>& data, const LaunchPlan& plan) {
        const Block block{reinterpret_cast<std::byte*>(data.data()), data.size()};
        const auto ring = schedule::built_in("ring", CollectiveKind::kAllReduce).value();
        return programs_
            .prepare({.type = DataType::kInt32, .inputs = {&block, 1}, .outputs = {&block, 1}},
                     ring, plan)
            .value();
    }
    [[nodiscard]] abi::DeviceProgramState& state() {
        return *std::bit_cast<abi::DeviceProgramState*>(programs_.state());
    }

   private:
    fakes::FakeCudaDriver driver_;
    device::DevicePrograms programs_;
};

class ProgramPair : public BareRanks {
   public:
    ProgramPair() : BareRanks(kNumberedRanks) {}

    void add_up(const LaunchPlan& plan) {
        on_both_ranks([&](int rank) {
            std::vector<std::int32_t> data(kCount, rank + 1);
            ProgramLaunch run = ranks_.at(static_cast<std::size_t>(rank)).prepare(data, plan);
            run.team = team(rank);
            EXPECT_TRUE(launch_program(run, nullptr).is_ok());
            EXPECT_FALSE(has_given_up(rank));
            EXPECT_EQ(data, std::vector<std::int32_t>(kCount, 3));
        });
    }

    /// As if so many messages had gone through every FIFO before.
    void meet_after(std::uint32_t messages, const LaunchPlan& plan) {
        std::vector<std::int32_t> none(1);
        for (ProgramRank& rank : ranks_) static_cast<void>(rank.prepare(none, plan));
        for (ProgramRank& rank : ranks_) {
            for (std::size_t peer = 0; peer < kNumberedRanks; ++peer)
                rank.state().peers[peer] = &ranks_.at(peer).state();
            for (auto& of_peer : rank.state().fifos)
                for (abi::DeviceFifo& fifo : of_peer)
                    for (abi::DeviceCounters& counters : fifo.counters)
                        counters = {messages, messages, messages, messages};
        }
    }

   private:
    static constexpr std::size_t kCount = 40'003;  // several windows of LL, and of LL128
    std::array<ProgramRank, kNumberedRanks> ranks_{ProgramRank(0), ProgramRank(1)};
};

class EmulatedMessageNumbersTest : public ::testing::TestWithParam<Protocol> {};

TEST_P(EmulatedMessageNumbersTest, GoOnWhereTheyWrap) {
    const LaunchPlan plan{GetParam(), 2, 192};
    ProgramPair pair;
    pair.meet_after(UINT32_MAX - 8, plan);
    for (int time = 0; time < 6; ++time) pair.add_up(plan);
}

INSTANTIATE_TEST_SUITE_P(Protocols, EmulatedMessageNumbersTest,
                         ::testing::Values(Protocol::kLL, Protocol::kLL128, Protocol::kDirect),
                         [](const auto& each) { return std::string(device::name_of(each.param)); });

}  // namespace
}  // namespace pccl::kernels
