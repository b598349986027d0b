// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/socket/path_counters.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <vector>

#include "csrc/base/unique_fd.h"
#include "csrc/sys/socket/socket.h"
#include "tests/cpp/sys/connected_sockets.h"
#include "tests/fakes/deadlines.h"

namespace pccl::sys {
namespace {

using std::chrono::microseconds;

TEST(PathCounters, CountWhatThePeersHostHasAcknowledged) {
    const Connection pair = connected(Address::parse("127.0.0.1:0").value());
    const std::vector<std::byte> sent(100'000, std::byte{7});
    ASSERT_TRUE(send_all(pair.client.get(), sent, fakes::test_deadline()).is_ok());
    std::vector<std::byte> received(sent.size());
    ASSERT_TRUE(receive_all(pair.server.get(), received, fakes::test_deadline()).is_ok());
    PathCounters counters = path_counters(pair.client.get());
    // The last acknowledgement may be under way.
    for (const Deadline end = fakes::test_deadline(); counters.sent < sent.size() && !end.passed();)
        counters = path_counters(pair.client.get());
    EXPECT_GE(counters.sent, sent.size());
    EXPECT_LE(counters.sent, sent.size() + 1) << "the handshake may count as a byte";
    EXPECT_GT(counters.round_trip, Duration::zero());
    EXPECT_EQ(path_counters(pair.server.get()).resent, 0U);
}

TEST(PathCounters, AreZeroOfOtherSockets) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    const UniqueFd one(ends[0]);
    const UniqueFd other(ends[1]);
    EXPECT_EQ(path_counters(one.get()).sent, 0U);
    EXPECT_EQ(path_counters(-1).round_trip, Duration::zero());
}

TEST(PathCounters, APeerThatDoesNotReadAnswers) {
    const Connection pair = connected(Address::parse("127.0.0.1:0").value());
    const std::vector<std::byte> bytes(1'000'000);
    // Until both kernels hold as much as they take.
    for (int full = 0; full < 3;) {
        const auto sent = send_some(pair.client.get(), bytes);
        ASSERT_TRUE(sent.is_ok());
        full = *sent == 0 ? full + 1 : 0;
        if (*sent == 0) system_clock().sleep_for(std::chrono::milliseconds(100));
    }
    EXPECT_LE(path_answers(pair.client.get()).unanswered, 1U);
    EXPECT_EQ(path_answers(-1).unanswered, 0U);
}

TEST(PathCounters, OfParallelConnectionsAddUp) {
    PathCounters sum{.sent = 10, .resent = 1, .round_trip = microseconds(5), .busy = {}};
    sum += {.sent = 5, .resent = 2, .round_trip = microseconds(3), .busy = microseconds(9)};
    EXPECT_EQ(sum.sent, 15U);
    EXPECT_EQ(sum.resent, 3U);
    EXPECT_EQ(sum.round_trip, microseconds(5));
    EXPECT_EQ(sum.busy, microseconds(9));
}

}  // namespace
}  // namespace pccl::sys
