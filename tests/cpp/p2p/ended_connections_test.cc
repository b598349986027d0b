// SPDX-License-Identifier: Apache-2.0

// Which connections a session tells a peer to have ended.
#include <gmock/gmock.h>

#include "csrc/p2p/session/peer_table.h"

namespace pccl::p2p {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const SessionId kPeer{.name = "peer", .incarnation = 1};

TEST(EndedConnectionsTest, AreSentToThatIncarnationOfThePeerAlone) {
    EndedConnections ended;
    ended.add(kPeer, 7);
    ended.add(kPeer, 8);
    ended.add(kPeer, 7);
    EXPECT_THAT(ended.with(kPeer), ElementsAre(7, 8));
    EXPECT_THAT(ended.with({.name = "other", .incarnation = 1}), IsEmpty());
    const SessionId successor{.name = "peer", .incarnation = 2};
    EXPECT_THAT(ended.with(successor), IsEmpty());
    ended.add(successor, 9);
    EXPECT_THAT(ended.with(successor), ElementsAre(9));
    EXPECT_THAT(ended.with(kPeer), IsEmpty());
    ended.forget("peer");
    EXPECT_THAT(ended.with(successor), IsEmpty());
}

TEST(EndedConnectionsTest, TheLastOnesAreKept) {
    EndedConnections ended;
    for (std::uint64_t number = 0; number <= EndedConnections::kMost; ++number)
        ended.add(kPeer, number);
    const auto numbers = ended.with(kPeer);
    ASSERT_EQ(numbers.size(), EndedConnections::kMost);
    EXPECT_EQ(numbers.front(), 1U);
    EXPECT_EQ(numbers.back(), EndedConnections::kMost);
}

}  // namespace
}  // namespace pccl::p2p
