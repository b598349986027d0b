// SPDX-License-Identifier: Apache-2.0

// What a rank has queued behind a launch that gives up runs before its host knows. A peer that
// comes then for the launch that was given up must not take the later one's data for its own.

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "csrc/device/programs/device_programs.h"
#include "csrc/kernels/launch.h"
#include "csrc/schedule/generators/generators.h"
#include "tests/cpp/emulated/bare_ranks.h"
#include "tests/fakes/fake_cuda.h"

namespace pccl::kernels {
namespace {

constexpr std::uint64_t kAMomentNs = 200'000'000;

using Tensor = std::vector<std::int32_t>;

Tensor numbers_from(std::int32_t first) {
    Tensor tensor(1000);
    std::iota(tensor.begin(), tensor.end(), first);
    return tensor;
}

std::byte* data_of(const Tensor& tensor) { return std::bit_cast<std::byte*>(tensor.data()); }
std::size_t bytes_of(const Tensor& tensor) { return tensor.size() * sizeof(std::int32_t); }

/// Rank 0 sends, rank 1 receives.
MessageLaunch message(BareRanks& ranks, int rank, const Tensor& tensor) {
    MessageLaunch launch{.team = ranks.team(rank)};
    KernelMessage& message =
        rank == 0 ? launch.sent[launch.sends++] : launch.received[launch.receives++];
    message = {.data = data_of(tensor),
               .peer_address = std::bit_cast<std::uint64_t>(tensor.data()),
               .bytes = bytes_of(tensor),
               .peer = 1 - rank};
    return launch;
}

TEST(EmulatedQueuedTest, ALaterMessageIsNotTakenForOneThatWasGivenUp) {
    BareRanks ranks(2);
    const Tensor first = numbers_from(1);
    const Tensor second = numbers_from(-5000);
    Tensor got(first.size());
    MessageLaunch in_vain = message(ranks, 0, first);
    in_vain.team.timeout_ns = kAMomentNs;
    EXPECT_TRUE(launch_messages(in_vain, nullptr).is_ok());
    EXPECT_TRUE(ranks.has_given_up(0));
    std::thread receiver(
        [&] { EXPECT_TRUE(launch_messages(message(ranks, 1, got), nullptr).is_ok()); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it has come, most probably
    EXPECT_TRUE(launch_messages(message(ranks, 0, second), nullptr).is_ok());
    receiver.join();
    EXPECT_TRUE(ranks.has_given_up(1) || got == first);
}

TEST(EmulatedQueuedTest, AMessageIsNotStoredWhereALaterOneIsAwaited) {
    BareRanks ranks(2);
    const Tensor first = numbers_from(1);
    Tensor early(first.size());
    Tensor late(first.size());
    MessageLaunch in_vain = message(ranks, 1, early);
    in_vain.team.timeout_ns = kAMomentNs;
    EXPECT_TRUE(launch_messages(in_vain, nullptr).is_ok());
    EXPECT_TRUE(ranks.has_given_up(1));
    std::thread sender(
        [&] { EXPECT_TRUE(launch_messages(message(ranks, 0, first), nullptr).is_ok()); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_TRUE(launch_messages(message(ranks, 1, late), nullptr).is_ok());
    sender.join();
    EXPECT_EQ(early, Tensor(first.size()));
    EXPECT_EQ(late, Tensor(first.size()));
}

/// Two ranks that run schedules.
class Scheduled : public BareRanks {
   public:
    Scheduled() : BareRanks(2) {
        for (Rank rank : {0, 1})
            programs_.at(static_cast<std::size_t>(rank)) = std::make_unique<device::DevicePrograms>(
                device::DeviceProgramOptions{.driver = driver_, .rank = rank, .size = 2});
    }
    /// Of rank 0's tensor.
    ProgramLaunch broadcast(Rank rank, const Tensor& tensor, Protocol protocol) {
        const Block block{data_of(tensor), tensor.size()};
        device::DevicePrograms& own = *programs_.at(static_cast<std::size_t>(rank));
        auto run = own.prepare({.kind = CollectiveKind::kBroadcast,
                                .type = DataType::kInt32,
                                .inputs = {&block, rank == 0 ? std::size_t{1} : 0},
                                .outputs = {&block, 1}},
                               schedule::built_in("ring", CollectiveKind::kBroadcast).value(),
                               LaunchPlan{protocol, 2, 192});
        EXPECT_TRUE(run.is_ok()) << run.status().to_string();
        run->team = team(rank);
        for (std::uint64_t& state : run->peer_pointers.inputs) state = own.state();
        return *run;
    }

   private:
    fakes::FakeCudaDriver driver_{std::make_shared<fakes::FakeGpus>()};
    std::array<std::unique_ptr<device::DevicePrograms>, 2> programs_;
};

TEST(EmulatedQueuedTest, ALaterBroadcastIsNotTakenForOneThatWasGivenUp) {
    for (const Protocol protocol : {Protocol::kDirect, Protocol::kLL}) {
        Scheduled ranks;
        const Tensor first = numbers_from(1);
        const Tensor second = numbers_from(-5000);
        Tensor got(first.size());
        std::array runs{ranks.broadcast(0, first, protocol), ranks.broadcast(1, got, protocol)};
        on_both_ranks([&](int rank) {
            const kernels::ProgramLaunch& run = runs.at(static_cast<std::size_t>(rank));
            EXPECT_TRUE(launch_state_exchange(run, nullptr).is_ok());
        });
        runs[0].team.timeout_ns = kAMomentNs;
        EXPECT_TRUE(launch_program(runs[0], nullptr).is_ok());
        EXPECT_TRUE(ranks.has_given_up(0));
        EXPECT_TRUE(launch_program(ranks.broadcast(0, second, protocol), nullptr).is_ok());
        EXPECT_TRUE(launch_program(runs[1], nullptr).is_ok());
        EXPECT_TRUE(ranks.has_given_up(1) || got == first);
    }
}

}  // namespace
}  // namespace pccl::kernels
