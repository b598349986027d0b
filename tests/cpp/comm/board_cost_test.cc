// Predictions for boards: what they must fulfil whatever a machine's steps cost.
#include "csrc/comm/board/board_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "csrc/base/text.h"

namespace pccl::comm {
namespace {

using costs::MachineCosts;
using schedule::CollectiveKind;

constexpr CollectiveKind kAllKinds[] = {CollectiveKind::kAllReduce,     CollectiveKind::kAllGather,
                                        CollectiveKind::kReduceScatter, CollectiveKind::kBroadcast,
                                        CollectiveKind::kReduce,        CollectiveKind::kGather,
                                        CollectiveKind::kScatter,       CollectiveKind::kAllToAll};

BoardShape shape_of(int ranks, int ranks_on_core = 1) {
    const auto parts = static_cast<std::size_t>(ranks);
    return {.ranks = ranks,
            .half_bytes = 1 * kMiB,
            .part_bytes = 1 * kMiB / parts / kCacheLine * kCacheLine,
            .reads_directly = true,
            .ranks_on_core = ranks_on_core};
}

double board_seconds(const std::vector<Prediction>& candidates, BoardAlgorithm algorithm) {
    const auto found = std::ranges::find(candidates, algorithm, &Prediction::on_board);
    return found == candidates.end() ? 0 : found->seconds;
}

/// Whatever it is, in nanoseconds a byte, at every level.
MachineCosts with_bytes(const std::string& name, double nanoseconds) {
    const std::string figure = concat(" ", nanoseconds);
    return MachineCosts::parse(concat(name, figure, figure, figure, figure, "\n")).value();
}

TEST(BoardCost, MoreBytesNeverTakeLess) {
    for (const CollectiveKind kind : kAllKinds)
        for (const int ranks : {2, 4, 16})
            for (const BoardAlgorithm algorithm : kBoardAlgorithms) {
                double before = 0;
                // Within one level of the caches: others have figures of their own.
                for (std::size_t bytes = 64 * kKiB; bytes * 32 <= 1 * kMiB; bytes *= 2) {
                    const BoardCall call{.kind = kind, .count = bytes};
                    const double seconds = board_seconds(
                        board_predictions(shape_of(ranks), call, MachineCosts()), algorithm);
                    EXPECT_GE(seconds, before);
                    before = seconds;
                }
            }
}

/// Of no bytes, what is left is looking at the others; who reads from one root looks at that alone.
TEST(BoardCost, ABeatGrowsWithTheRanksThatAreWaitedFor) {
    const auto seconds = [](CollectiveKind kind, int ranks) {
        return board_seconds(board_predictions(shape_of(ranks), {.kind = kind}, MachineCosts()),
                             BoardAlgorithm::kOneShot);
    };
    const double line = MachineCosts().beat.seconds;
    for (const CollectiveKind kind : kAllKinds) {
        const bool from_root =
            kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kScatter;
        EXPECT_NEAR(seconds(kind, 16) - seconds(kind, 2), from_root ? 0 : 14 * line, 1e-12);
    }
}

/// A half has some KiB more than a power of two: they put no rooms beyond a cache of 2 MiB.
TEST(BoardCost, WhatHeadsLeaveOfAHalfChangesNothing) {
    MachineCosts costs;
    costs.cache_bytes[1] = 2 * kMiB;
    BoardShape longer = shape_of(2);
    longer.half_bytes += 7 * kKiB;
    const BoardCall call{
        .kind = CollectiveKind::kAllReduce, .element_bytes = 4, .count = 64 * kKiB};
    for (const BoardAlgorithm algorithm : kBoardAlgorithms)
        EXPECT_EQ(board_seconds(board_predictions(longer, call, costs), algorithm),
                  board_seconds(board_predictions(shape_of(2), call, costs), algorithm));
}

TEST(BoardCost, WhoTakesTurnsOnACoreTakesLonger) {
    for (const CollectiveKind kind : kAllKinds) {
        const BoardCall call{.kind = kind, .count = 4 * kKiB};
        const auto alone = board_predictions(shape_of(4), call, MachineCosts());
        const auto crowded = board_predictions(shape_of(4, 2), call, MachineCosts());
        for (const Prediction& candidate : alone)
            EXPECT_GT(board_seconds(crowded, candidate.on_board), candidate.seconds);
    }
}

TEST(BoardCost, WhereReadingDirectlyIsDearNobodyDoes) {
    const BoardCall call{.kind = CollectiveKind::kAllGather, .count = 256 * kKiB};
    const auto best = [&](const MachineCosts& costs) {
        return board_predictions(shape_of(2), call, costs).front().on_board;
    };
    EXPECT_EQ(best(with_bytes("direct", 5)), BoardAlgorithm::kOneShot);
    EXPECT_EQ(best(with_bytes("direct", 0.001)), BoardAlgorithm::kDirect);
}

TEST(BoardCost, WhatWasReadBeforeMayBeReadAgainButNotWhatWasSummedUpInPlace) {
    MachineCosts costs = with_bytes("direct", 0.2);
    const auto directly = [&](CollectiveKind kind) {
        const BoardCall call{.kind = kind, .count = 256 * kKiB};
        return board_seconds(board_predictions(shape_of(2), call, costs), BoardAlgorithm::kDirect);
    };
    const double gathered = directly(CollectiveKind::kAllGather);
    const double reduced = directly(CollectiveKind::kAllReduce);
    costs.fill_up_from(with_bytes("direct_again", 0.02));
    EXPECT_LT(directly(CollectiveKind::kAllGather), gathered);
    EXPECT_EQ(directly(CollectiveKind::kAllReduce), reduced);
}

TEST(BoardCost, BlocksGoDirectlyFromWhereThatIsFaster) {
    const BoardCall call{.kind = CollectiveKind::kAllToAll, .count = 0};
    const auto inline_bytes = [&](const MachineCosts& costs, int ranks = 2) {
        return plan_on_board(shape_of(ranks), call, BoardAlgorithm::kDirect, costs).inline_bytes;
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

TEST(BoardCost, EveryPlanMovesSomething) {
    for (const CollectiveKind kind : kAllKinds)
        for (const int ranks : {2, 256})
            for (const BoardAlgorithm algorithm : kBoardAlgorithms)
                for (const std::size_t element : {1, 2, 4, 8, 16}) {
                    const BoardCall call{.kind = kind, .element_bytes = element, .count = 1000};
                    EXPECT_GT(
                        plan_on_board(shape_of(ranks), call, algorithm, MachineCosts()).window, 0U);
                }
}

}  // namespace
}  // namespace pccl::comm
