// SPDX-License-Identifier: Apache-2.0

// Predictions for segments: what they must fulfil whatever a machine's steps cost.
#include "csrc/costs/model/shm_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"

namespace pccl::costs {
namespace {

using schedule::CollectiveKind;

constexpr CollectiveKind kAllKinds[] = {CollectiveKind::kAllReduce,     CollectiveKind::kAllGather,
                                        CollectiveKind::kReduceScatter, CollectiveKind::kBroadcast,
                                        CollectiveKind::kReduce,        CollectiveKind::kGather,
                                        CollectiveKind::kScatter,       CollectiveKind::kAllToAll};

ShmShape shape_of(int ranks, int ranks_on_core = 1) {
    const auto parts = static_cast<std::size_t>(ranks);
    return {.ranks = ranks,
            .buffer_bytes = 1 * kMiB,
            .part_bytes = 1 * kMiB / parts / kCacheLine * kCacheLine,
            .reads_directly = true,
            .ranks_on_core = ranks_on_core};
}

double board_seconds(const std::vector<Prediction>& candidates, ShmAlgorithm algorithm) {
    const auto found = std::ranges::find(candidates, algorithm, &Prediction::on_shm);
    return found == candidates.end() ? 0 : found->seconds;
}

/// Whatever it is, in nanoseconds a byte, at every level.
MachineCosts with_bytes(const std::string& name, double nanoseconds) {
    const std::string figure = concat(" ", nanoseconds);
    return MachineCosts::parse(concat(name, figure, figure, figure, figure, "\n")).value();
}

TEST(ShmCostTest, MoreBytesNeverTakeLess) {
    for (const CollectiveKind kind : kAllKinds)
        for (const int ranks : {2, 4, 16})
            for (const ShmAlgorithm algorithm : kShmAlgorithms) {
                double before = 0;
                // Within one level of the caches: others have figures of their own.
                for (std::size_t bytes = 64 * kKiB; bytes * 32 <= 1 * kMiB; bytes *= 2) {
                    const ShmCall call{.kind = kind, .count = bytes};
                    const double seconds = board_seconds(
                        shm_predictions(shape_of(ranks), call, MachineCosts()), algorithm);
                    EXPECT_GE(seconds, before);
                    before = seconds;
                }
            }
}

/// Of no bytes, what is left is looking at the others; who reads from one root looks at that alone.
TEST(ShmCostTest, ARoundGrowsWithTheRanksThatAreWaitedFor) {
    const auto seconds = [](CollectiveKind kind, int ranks) {
        return board_seconds(shm_predictions(shape_of(ranks), {.kind = kind}, MachineCosts()),
                             ShmAlgorithm::kOneShot);
    };
    const double line = MachineCosts().core_round_trip.seconds;
    for (const CollectiveKind kind : kAllKinds) {
        const bool from_root =
            kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kScatter;
        EXPECT_NEAR(seconds(kind, 16) - seconds(kind, 2), from_root ? 0 : 14 * line, 1e-12);
    }
}

/// A buffer has some KiB more than a power of two: they put no slots beyond a cache of 2 MiB.
TEST(ShmCostTest, WhatHeadersLeaveOfABufferChangesNothing) {
    MachineCosts costs;
    costs.cache_bytes[1] = 2 * kMiB;
    ShmShape longer = shape_of(2);
    longer.buffer_bytes += 7 * kKiB;
    const ShmCall call{.kind = CollectiveKind::kAllReduce, .element_bytes = 4, .count = 64 * kKiB};
    for (const ShmAlgorithm algorithm : kShmAlgorithms)
        EXPECT_EQ(board_seconds(shm_predictions(longer, call, costs), algorithm),
                  board_seconds(shm_predictions(shape_of(2), call, costs), algorithm));
}

TEST(ShmCostTest, WhoTakesTurnsOnACoreTakesLonger) {
    for (const CollectiveKind kind : kAllKinds) {
        const ShmCall call{.kind = kind, .count = 4 * kKiB};
        const auto alone = shm_predictions(shape_of(4), call, MachineCosts());
        const auto crowded = shm_predictions(shape_of(4, 2), call, MachineCosts());
        for (const Prediction& candidate : alone)
            EXPECT_GT(board_seconds(crowded, candidate.on_shm), candidate.seconds);
    }
}

TEST(ShmCostTest, WhereReadingDirectlyIsDearNobodyDoes) {
    const ShmCall call{.kind = CollectiveKind::kAllGather, .count = 256 * kKiB};
    const auto best = [&](const MachineCosts& costs) {
        return shm_predictions(shape_of(2), call, costs).front().on_shm;
    };
    EXPECT_EQ(best(with_bytes("direct", 5)), ShmAlgorithm::kOneShot);
    EXPECT_EQ(best(with_bytes("direct", 0.001)), ShmAlgorithm::kDirect);
}

TEST(ShmCostTest, WhatWasReadBeforeMayBeReadAgainButNotWhatWasSummedUpInPlace) {
    MachineCosts costs = with_bytes("direct", 0.2);
    const auto directly = [&](CollectiveKind kind) {
        const ShmCall call{.kind = kind, .count = 256 * kKiB};
        return board_seconds(shm_predictions(shape_of(2), call, costs), ShmAlgorithm::kDirect);
    };
    const double gathered = directly(CollectiveKind::kAllGather);
    const double reduced = directly(CollectiveKind::kAllReduce);
    costs.fill_up_from(with_bytes("direct_again", 0.02));
    EXPECT_LT(directly(CollectiveKind::kAllGather), gathered);
    EXPECT_EQ(directly(CollectiveKind::kAllReduce), reduced);
}

TEST(ShmCostTest, BlocksGoDirectlyFromWhereThatIsFaster) {
    const ShmCall call{.kind = CollectiveKind::kAllToAll, .count = 0};
    const auto inline_bytes = [&](const MachineCosts& costs, int ranks = 2) {
        return plan_on_shm(shape_of(ranks), call, ShmAlgorithm::kDirect, costs).inline_bytes;
    };
    EXPECT_EQ(inline_bytes(with_bytes("direct", 5)), shape_of(2).part_bytes);
    const std::size_t cheap =
        inline_bytes(MachineCosts::parse("direct_start 0.5\ndirect 0.01 0.01 0.01 0.01\n").value());
    const std::size_t dear_start =
        inline_bytes(MachineCosts::parse("direct_start 2\ndirect 0.01 0.01 0.01 0.01\n").value());
    EXPECT_LT(cheap, dear_start);
    EXPECT_LT(dear_start, shape_of(2).part_bytes);
    EXPECT_GT(cheap, 0U);
    const MachineCosts of_one =
        MachineCosts::parse("beat 0.001\ndirect_start 0.5\ndirect 0.01 0.01 0.01 0.01\n").value();
    const MachineCosts of_several =
        MachineCosts::parse("beat 0.2\ndirect_start 0.5\ndirect 0.01 0.01 0.01 0.01\n").value();
    EXPECT_EQ(inline_bytes(of_one), inline_bytes(of_several));
    EXPECT_LT(inline_bytes(of_one, 3), inline_bytes(of_several, 3)) << "two readers of a process";
}

TEST(ShmCostTest, EveryPlanMovesSomething) {
    for (const CollectiveKind kind : kAllKinds)
        for (const int ranks : {2, 256})
            for (const ShmAlgorithm algorithm : kShmAlgorithms)
                for (const std::size_t element : {1, 2, 4, 8, 16}) {
                    const ShmCall call{.kind = kind, .element_bytes = element, .count = 1000};
                    EXPECT_GT(plan_on_shm(shape_of(ranks), call, algorithm, MachineCosts()).window,
                              0U);
                }
}

}  // namespace
}  // namespace pccl::costs
