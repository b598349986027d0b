// SPDX-License-Identifier: Apache-2.0

// Schedules that are played through, against the closed forms of the literature. All numbers are
// sums of few powers of two, so that both are exact.
#include "csrc/schedule/simulator/replay.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "csrc/schedule/generators/generators.h"
#include "tests/cpp/schedule/catalogue.h"
#include "tests/cpp/schedule/replays.h"

namespace pccl::schedule {
namespace {

TEST(ReplayTest, ARingTakesItsClosedForm) {
    for (const int n : {2, 4, 16, 64, 256}) {
        for (const SimulatedNetwork& network :
             {ring_of_circuits(n, 1, kSpeed), one_switch(n, kSpeed)}) {
            const auto all_reduce = played("ring", CollectiveKind::kAllReduce, network);
            EXPECT_EQ(all_reduce.seconds, 2 * (n - 1) * seconds_of_step(kBytes / n)) << n;
            EXPECT_EQ(all_reduce.rounds, 2 * (n - 1));
            EXPECT_EQ(all_reduce.messages, 2LL * n * (n - 1));
            EXPECT_EQ(all_reduce.bytes_sent, 2 * (n - 1) * kBytes);
            const auto all_gather = played("ring", CollectiveKind::kAllGather, network);
            EXPECT_EQ(all_gather.seconds, (n - 1) * seconds_of_step(kBytes)) << n;
        }
    }
}

TEST(ReplayTest, TimesThatAreNoNumbersEndToo) {
    const double nan = std::nan("");
    for (const LinkSpeed& speed :
         {LinkSpeed{nan, kDelta, kBandwidth}, LinkSpeed{kAlpha, nan, kBandwidth},
          LinkSpeed{kAlpha, kDelta, nan}})
        played("ring", CollectiveKind::kAllReduce, one_switch(4, speed));
}

TEST(ReplayTest, HalvingAndDoublingTakeTheirClosedForm) {
    for (const int n : {2, 8, 64, 256}) {
        const SimulatedNetwork network = one_switch(n, kSpeed);
        double seconds = 0;
        for (int part = 2; part <= n; part *= 2) seconds += 2 * seconds_of_step(kBytes / part);
        EXPECT_EQ(played("recursive_halving", CollectiveKind::kAllReduce, network).seconds, seconds)
            << n;
        EXPECT_EQ(played("recursive_doubling", CollectiveKind::kAllReduce, network).seconds,
                  std::countr_zero(static_cast<unsigned>(n)) * seconds_of_step(kBytes))
            << n;
    }
}

TEST(ReplayTest, ATreeTakesItsClosedForm) {
    for (const int n : {2, 8, 64, 1024}) {
        const int levels = std::countr_zero(static_cast<unsigned>(n));
        const auto tree = played("binomial", CollectiveKind::kBroadcast, one_switch(n, kSpeed));
        EXPECT_EQ(tree.seconds, levels * seconds_of_step(kBytes)) << n;
        EXPECT_EQ(tree.messages, n - 1);
        EXPECT_EQ(tree.rounds, levels);
    }
}

TEST(ReplayTest, ReductionsTakeTheirTime) {
    SimulatedNetwork network = one_switch(8, kSpeed);
    network.reduce_seconds_per_byte = 0x1p-32;
    const double pause = kBytes * network.reduce_seconds_per_byte;
    EXPECT_EQ(played("recursive_doubling", CollectiveKind::kAllReduce, network).seconds,
              3 * (seconds_of_step(kBytes) + pause));
}

TEST(ReplayTest, RefusesOtherRanksAndSteps) {
    const SourcePtr ring = built_in("ring", CollectiveKind::kAllGather).value();
    EXPECT_EQ(replay(piece_of(ring, least_shape(*ring, 4)), one_switch(8, kSpeed)).status().code(),
              StatusCode::kInvalidArgument);
    const auto huge =
        replay(piece_of(ring, least_shape(*ring, 16384)), two_levels(16384, 8, kSpeed, kSpeed));
    EXPECT_EQ(huge.status().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace pccl::schedule
