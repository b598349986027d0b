// SPDX-License-Identifier: Apache-2.0

// Messages between ranks: what arrives, and what is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cstddef>
#include <vector>

#include "tests/fakes/device_ranks.h"

namespace pccl::comm {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

#if defined(__SANITIZE_THREAD__)
constexpr int kMessageRanks = 2;  // it knows 8128 threads, and a block of messages has 512
#else
constexpr int kMessageRanks = 3;
#endif

std::byte* memory(fakes::DeviceRank& member, std::size_t bytes) {
    return std::bit_cast<std::byte*>(member.driver.allocate(bytes));
}

/// Rank 0's are long: several blocks send one of them.
std::size_t bytes_between(Rank from, Rank to) {
    return static_cast<std::size_t>(from == 0 ? 200'001 + to : 1 + 100 * from + 10 * to);
}

std::byte mark(Rank from, Rank to, int round) {
    return static_cast<std::byte>(16 * from + 4 * to + round + 1);
}

TEST(EmulatedMessagesTest, EachPairHasItsOwn) {
    fakes::run_device_ranks({.size = kMessageRanks}, [](fakes::DeviceRank& member) {
        const Rank self = member.group.rank();
        for (int round = 0; round < 3; ++round) {
            std::vector<device::PeerMessage> sends;
            std::vector<device::PeerMessage> receives;
            for (Rank peer = 0; peer < kMessageRanks; ++peer) {
                const std::size_t out = bytes_between(self, peer);
                sends.push_back({peer, memory(member, out), out});
                std::fill_n(sends.back().data, out, mark(self, peer, round));
                const std::size_t in = bytes_between(peer, self);
                receives.push_back({peer, memory(member, in), in});
            }
            const Status status =
                member.group.exchange({.sends = sends, .receives = receives}, nullptr);
            ASSERT_TRUE(status.is_ok()) << status.to_string();
            ASSERT_TRUE(member.group.health().is_ok());
            for (const device::PeerMessage& each : receives) {
                const std::vector<std::byte> got(each.data, each.data + each.bytes);
                EXPECT_THAT(got, Each(mark(each.peer, self, round))) << each.peer << self;
            }
        }
    });
}

TEST(EmulatedMessagesTest, AnotherLengthIsRefused) {
    const fakes::DeviceRanksOptions options{.size = 2, .timeout = std::chrono::milliseconds(3000)};
    fakes::run_device_ranks(options, [](fakes::DeviceRank& member) {
        const bool is_sending = member.group.rank() == 0;
        const std::size_t bytes = is_sending ? 128 : 192;
        const device::PeerMessage message{1 - member.group.rank(), memory(member, bytes), bytes};
        const Status launched = is_sending
                                    ? member.group.exchange({.sends = {&message, 1}}, nullptr)
                                    : member.group.exchange({.receives = {&message, 1}}, nullptr);
        EXPECT_TRUE(launched.is_ok());
        EXPECT_EQ(member.group.health().code(), StatusCode::kMismatch);
        EXPECT_THAT(member.group.health().message(),
                    HasSubstr("rank 0 sends 128 bytes, but rank 1 expects 192"));
    });
}

}  // namespace
}  // namespace pccl::comm
