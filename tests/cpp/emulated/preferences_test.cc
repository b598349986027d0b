// SPDX-License-Identifier: Apache-2.0

// Groups whose users bound the blocks of a launch, and choose its protocol.

#include "csrc/device/launch/preferences.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/cpp/emulated/cases.h"
#include "tests/emulator/gpu.h"

namespace pccl::comm {
namespace {

using enum CollectiveKind;
using kernels::Protocol;

constexpr int kMostBlocks = 3;
constexpr std::array kAllKinds{kAllReduce, kReduceScatter, kReduce, kAllGather,
                               kAllToAll,  kBroadcast,     kGather, kScatter};
constexpr std::array<std::optional<Protocol>, 6> kPreferences{
    std::nullopt,         Protocol::kLL,         Protocol::kDirect,
    Protocol::kStaggered, Protocol::kCopyEngine, Protocol::kLL128};

class EmulatedPreferencesTest : public ::testing::TestWithParam<std::optional<Protocol>> {
   protected:
    static void run(int ranks, const std::function<void(fakes::DeviceRank&)>& body) {
        if (!kRunsLongOnes) GTEST_SKIP() << kWhyNoLongOnes;
        fakes::run_device_ranks(
            {.size = ranks, .preferences = {.most_blocks = kMostBlocks, .protocol = GetParam()}},
            [&](fakes::DeviceRank& member) {
                body(member);
                const auto most_blocks = static_cast<int>(emulator::take_most_blocks());
                EXPECT_GE(most_blocks, 1);
                EXPECT_LE(most_blocks, kMostBlocks);
            });
    }
};

TEST_P(EmulatedPreferencesTest, CollectivesAreRight) {
    std::vector<Case> cases;
    for (const CollectiveKind kind : kAllKinds)
        for (const std::size_t count : {std::size_t{1}, std::size_t{2000}, std::size_t{70'003}})
            cases.push_back({.kind = kind, .type = DataType::kBfloat16, .count = count});
    for (const char* const algorithm : {"ring", "pat"})
        cases.push_back({.kind = kAllGather, .count = 3000, .algorithm = algorithm});
    run(2, [&](fakes::DeviceRank& member) {
        for (const Case& each : cases) {
            const CaseRun one(each, member);
            const Status status = one.launch();
            ASSERT_TRUE(status.is_ok()) << each << ": " << status.to_string();
            one.expect_results();
        }
    });
}

TEST_P(EmulatedPreferencesTest, SoAreSeveralAtOnce) {
    std::vector<Case> cases;
    for (const std::size_t count : {1, 77, 3000, 20'000, 5, 5})
        cases.push_back({.type = DataType::kBfloat16, .count = count});
    run(3, [&](fakes::DeviceRank& member) {
        const RunTogether together(cases, member);
        const Status status = together.launch();
        ASSERT_TRUE(status.is_ok()) << status.to_string();
        together.expect_results();
    });
}

TEST_P(EmulatedPreferencesTest, AndALongMessage) {
    run(2, [](fakes::DeviceRank& member) {
        constexpr std::size_t kBytes = 500'000;
        const auto memory = [&] {
            return std::bit_cast<std::byte*>(member.driver.allocate(kBytes));
        };
        const Rank peer = 1 - member.group.rank();
        const device::PeerMessage out{peer, memory(), kBytes};
        const device::PeerMessage in{peer, memory(), kBytes};
        std::fill_n(out.data, kBytes, std::byte(7 + member.group.rank()));
        const Status status = member.group.exchange({{&out, 1}, {&in, 1}}, nullptr);
        ASSERT_TRUE(status.is_ok()) << status.to_string();
        ASSERT_TRUE(member.group.health().is_ok());
        EXPECT_TRUE(std::all_of(in.data, in.data + kBytes,
                                [&](std::byte each) { return each == std::byte(7 + peer); }));
    });
}

INSTANTIATE_TEST_SUITE_P(Protocols, EmulatedPreferencesTest, ::testing::ValuesIn(kPreferences),
                         [](const auto& each) {
                             const auto protocol = each.param;
                             return protocol ? std::string(device::name_of(*protocol)) : "any";
                         });

}  // namespace
}  // namespace pccl::comm
