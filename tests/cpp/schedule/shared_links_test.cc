// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/simulator/shared_links.h"

#include <gtest/gtest.h>

#include "csrc/schedule/generators/generators.h"
#include "csrc/schedule/simulator/replay.h"
#include "tests/cpp/schedule/catalogue.h"
#include "tests/cpp/schedule/replays.h"

namespace pccl::schedule {
namespace {

TEST(ReplayTest, MessagesOfOneLinkShareIt) {
    // All pairs over circuits of a ring: from each rank, to the ranks 1, 2 and 3 circuits away.
    const auto seconds = [](int ports) {
        const auto network = ring_of_circuits(4, ports, kSpeed);
        const SourcePtr source = built_in("pairwise", CollectiveKind::kAllToAll).value();
        const auto rounds = replay_in_rounds(piece_of(source, least_shape(*source, 4)), network);
        EXPECT_TRUE(rounds.is_ok()) << rounds.status().to_string();
        double sum = 0;
        for (const Round& round : *rounds) sum += round.seconds;
        return sum;
    };
    const auto crowded = [](int hops) {
        return kAlpha + hops * kDelta + hops * kBytes / kBandwidth;
    };
    EXPECT_EQ(seconds(1), crowded(1) + crowded(2) + crowded(3));
    EXPECT_EQ(seconds(2), crowded(1) + crowded(2) + crowded(1));
}

TEST(ReplayTest, RanksOfAHostShareItsLink) {
    const LinkSpeed across{kAlpha, kDelta, kBandwidth / 2};
    // Of 4 hosts with 4 ranks each: all ranks of a host exchange with those of another at once.
    const auto doubling =
        played("recursive_doubling", CollectiveKind::kAllReduce, two_levels(16, 4, kSpeed, across));
    EXPECT_EQ(doubling.seconds,
              2 * seconds_of_step(kBytes) + 2 * (kAlpha + kDelta + 4 * kBytes / (kBandwidth / 2)));
    EXPECT_EQ(doubling.busiest.name, "out of host 0");
    EXPECT_EQ(doubling.busiest.bytes, 8 * kBytes);
}

}  // namespace
}  // namespace pccl::schedule
