// SPDX-License-Identifier: Apache-2.0

// What a group on one host chooses, which has a segment and links.
#include "csrc/comm/selection/selector.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "csrc/base/ids.h"
#include "tests/cpp/comm/selections.h"
#include "tests/cpp/schedule/catalogue.h"

namespace pccl::comm {
namespace {

// So much at a time that every few bytes take a round of all ranks.
constexpr std::size_t kTinyBuffer = 1 * kKiB;

bool is_over_shm(std::size_t buffer_bytes, std::size_t bytes,
                 SelectionPreferences preferences = {}) {
    Selector selector = selector_of(0, 4, buffer_bytes, std::move(preferences));
    const Decision decision = decision_of(selector, CollectiveKind::kAllReduce, 4, bytes);
    EXPECT_EQ(decision.header.over == abi::Over::kShm, decision.is_on_shm());
    return decision.is_on_shm();
}

TEST(SelectorTest, RanksSharedMemoryAndLinksOnOneScale) {
    Selector selector = selector_of(0, 4, kBuffer);
    for (const std::size_t bytes : {std::size_t{0}, 64 * kKiB, 16 * kMiB}) {
        const auto ways = selector.explain(CollectiveKind::kAllReduce, bytes).value();
        EXPECT_TRUE(std::ranges::is_sorted(ways, {}, &Prediction::seconds));
        EXPECT_EQ(std::ranges::count(ways, true, &Prediction::is_chosen), 1);
        for (const std::string_view over : {"shm", "links"})
            EXPECT_NE(std::ranges::find(ways, over, &Prediction::over), ways.end()) << over;
    }
}

TEST(SelectorTest, TakesLinksWhereTheyAreClearlyFaster) {
    EXPECT_TRUE(is_over_shm(kBuffer, 1 * kMiB));
    EXPECT_FALSE(is_over_shm(kTinyBuffer, 1 * kMiB));
    EXPECT_TRUE(is_over_shm(kTinyBuffer, 1)) << "one round";
}

TEST(SelectorTest, KeepsSharedMemoryWhereLinksSaveLessThanAFewPercent) {
    for (std::size_t buffer_bytes = kTinyBuffer; buffer_bytes <= kBuffer; buffer_bytes *= 2) {
        Selector selector = selector_of(0, 4, buffer_bytes);
        const auto ways = selector.explain(CollectiveKind::kAllReduce, 1 * kMiB).value();
        const auto segment = std::ranges::find(ways, "shm", &Prediction::over);
        const auto links = std::ranges::find(ways, "links", &Prediction::over);
        const bool is_worth = links->seconds <= 0.85 * segment->seconds;
        const auto chosen = std::ranges::find(ways, true, &Prediction::is_chosen);
        EXPECT_EQ(chosen->over(), is_worth ? "links" : "shm") << buffer_bytes;
        EXPECT_LE(chosen->seconds, is_worth ? 1.1 * links->seconds : segment->seconds)
            << buffer_bytes;
    }
}

TEST(SelectorTest, AllRanksDecideAlike) {
    constexpr int kRanks = 5;
    for (const std::size_t buffer_bytes : {kTinyBuffer, kBuffer})
        for (const CollectiveKind kind : schedule::testing::kAllKinds)
            for (const std::size_t bytes : {std::size_t{1}, 100 * kKiB, 8 * kMiB}) {
                Selector first = selector_of(0, kRanks, buffer_bytes);
                const Decision ours = decision_of(first, kind, kRanks, bytes);
                for (Rank rank = 1; rank < kRanks; ++rank) {
                    Selector other = selector_of(rank, kRanks, buffer_bytes);
                    const Decision theirs = decision_of(other, kind, kRanks, bytes);
                    EXPECT_TRUE(compare(ours.header, theirs.header, {.peer = rank}).is_ok())
                        << schedule::to_string(kind) << " of " << bytes;
                    EXPECT_EQ(ours.on_shm.window, theirs.on_shm.window);
                    EXPECT_EQ(ours.cut.window, theirs.cut.window);
                }
            }
}

/// By what it has kept, forgotten and predicted anew: these are more than it keeps.
TEST(SelectorTest, DecidesAlikeWhateverWasCalledBefore) {
    constexpr int kRanks = 4;
    std::mt19937 random(7);
    Selector old = selector_of(0, kRanks, kBuffer);
    for (int call = 0; call < 2000; ++call) {
        const Collective next{
            .kind =
                schedule::testing::kAllKinds[random() % std::size(schedule::testing::kAllKinds)],
            .type = random() % 2 == 0 ? DataType::kFloat32 : DataType::kBfloat16,
            .op = random() % 2 == 0 ? ReduceOp::kSum : ReduceOp::kMax,
            .root = static_cast<Rank>(random() % kRanks)};
        const std::size_t count = random() % kMiB >> random() % 20;
        Selector fresh = selector_of(0, kRanks, kBuffer);
        const Decision ours = decision_of(old, next, kRanks, count);
        const Decision theirs = decision_of(fresh, next, kRanks, count);
        EXPECT_TRUE(compare(ours.header, theirs.header, {.peer = 1}).is_ok())
            << schedule::to_string(next.kind) << " of " << count;
        EXPECT_EQ(ours.header.count, signature_of(next).is_of_pairs ? 0 : count);
        EXPECT_EQ(ours.cut.window, theirs.cut.window);
        EXPECT_EQ(ours.on_shm.window, theirs.on_shm.window);
    }
}

TEST(SelectorTest, WhatTheUserWantsComesFirst) {
    EXPECT_FALSE(is_over_shm(kBuffer, 1, {.wanted = "all_reduce=ring", .tuning = {}}));
    EXPECT_TRUE(
        is_over_shm(kTinyBuffer, 1 * kMiB, {.wanted = "all_reduce=shm_one_shot", .tuning = {}}));
}

TEST(SelectorTest, WhatWasMeasuredComesBeforeWhatIsPredicted) {
    const Tuning tuning =
        Tuning::parse("all_reduce 2 0 shm_one_shot\nall_reduce 2 4096 ring\n").value();
    EXPECT_FALSE(is_over_shm(kBuffer, 4096, {.wanted = {}, .tuning = tuning}));
    EXPECT_TRUE(is_over_shm(kTinyBuffer, 4095, {.wanted = {}, .tuning = tuning}));
}

TEST(SelectorTest, MeasurementsOnOneHostAreNotUsedForSeveral) {
    Selector selector(0,
                      {.reach = {.ranks = 4, .shares_memory = true},
                       .segment = {},
                       .layout = *bootstrap::Layout::make(4, "")},
                      {.wanted = {}, .tuning = Tuning::parse("all_reduce 2 0 ring\n").value()});
    const auto ways = selector.explain(CollectiveKind::kAllReduce, 1024).value();
    EXPECT_EQ(chosen_of(ways), ways.front().algorithm());
    EXPECT_NE(chosen_of(ways), "ring");
}

TEST(SelectorTest, MemoryOfOthersIsReadWhereThatIsWorthIt) {
    const auto chosen_with = [](const char* direct) {
        const std::string text = std::string(
            "direct_start 0.001\nwrite 0.1 0.1 0.1 0.1\ntake 0.1 0.1 0.1 0.1\n"
            "stream 5 5 5 5\ntake_streamed 5 5 5 5\ncopy 0.01 0.01 0.01 0.01\ndirect ");
        const auto costs = costs::MachineCosts::parse(text + direct + "\n").value();
        Selector selector(0,
                          {.reach = {.ranks = 2, .is_on_one_host = true, .shares_memory = true},
                           .segment = costs::ShmShape{.ranks = 2,
                                                      .buffer_bytes = kMiB,
                                                      .part_bytes = kMiB / 2,
                                                      .reads_directly = true},
                           .layout = *bootstrap::Layout::make(2, "")},
                          {.costs = costs});
        return std::string(
            chosen_of(selector.explain(CollectiveKind::kAllGather, 256 * kKiB).value()));
    };
    EXPECT_EQ(chosen_with("0.23 0.23 0.23 0.23"), "shm_one_shot");
    EXPECT_EQ(chosen_with("0.2 0.2 0.2 0.2"), "shm_direct") << "bytes move once, in as much time";
    EXPECT_EQ(chosen_with("0.05 0.05 0.05 0.05"), "shm_direct");
}

TEST(SelectorTest, ExplainsOnlyWaysForBlocksWithLengthsKnownToPairs) {
    Selector selector = selector_of(0, 8, kBuffer);
    for (const CollectiveKind kind : {CollectiveKind::kGather, CollectiveKind::kScatter}) {
        const auto ways = selector.explain(kind, 4096).value();
        EXPECT_FALSE(ways.empty());
        for (const Prediction& way : ways)
            EXPECT_TRUE(way.source == nullptr || way.source->takes_uneven) << way.algorithm();
    }
}

TEST(SelectorTest, EvenBlocksOfAllToAllTakeFewMessagesWhereTheyAreShort) {
    constexpr int kRanks = 16;
    const std::vector<Block> blocks(kRanks, Block{nullptr, 256});
    Selector selector(0,
                      {.reach = {.ranks = kRanks, .most_on_a_host = 1},
                       .segment = {},
                       .layout = *bootstrap::Layout::make(kRanks, "")},
                      {});
    const auto algorithm = [&](bool is_even) {
        const auto decision = selector.choose({.kind = CollectiveKind::kAllToAll,
                                               .type = DataType::kUint8,
                                               .inputs = blocks,
                                               .outputs = blocks,
                                               .is_even = is_even});
        return decision.is_ok() ? algorithm_name((*decision)->header)
                                : decision.status().to_string();
    };
    EXPECT_EQ(algorithm(true), "bruck");
    EXPECT_EQ(algorithm(false), "one_shot");
}

/// Up two trees and down again each message waits for one of another rank. That took 66 to 80 us
/// among 14 and 15 ranks and 124 among 48, and doubling, with two rounds for who is left over, 40
/// among 12.
TEST(SelectorTest, AnyNumberOfRanksAddsUpShortVectorsInTheFewestRounds) {
    for (const int ranks : {12, 13, 14, 15, 24, 31, 33, 48})
        EXPECT_EQ(chosen_over_sockets(ranks, CollectiveKind::kAllReduce, 4 * kKiB),
                  "recursive_doubling")
            << ranks;
}

/// Four on two cores: each message wakes its receiver, and all copy as much, whatever the tree.
TEST(SelectorTest, RanksThatShareCoresOverSocketsSendFewMessagesAndHaveNoTreesOfTwoChildren) {
    for (const std::size_t bytes : {kKiB, 4 * kKiB, 16 * kKiB})
        EXPECT_EQ(chosen_over_sockets(4, CollectiveKind::kAllReduce, bytes, 2),
                  "recursive_doubling");
    for (const std::size_t bytes : {kKiB, 64 * kKiB, 256 * kKiB, kMiB})
        EXPECT_NE(chosen_over_sockets(4, CollectiveKind::kBroadcast, bytes, 2),
                  "double_binary_tree");
}

/// Whether it calls without a pause or not: from the root at once, or over shared memory.
TEST(SelectorTest, ShortBroadcastsPassFewRanksWhereRanksShareCores) {
    const auto costs = costs::MachineCosts::parse(
                           "beat 0.07\nshared_core_beat 4.4\n"
                           "write 0.06 0.06 0.06 0.09\n"
                           "take 0.03 0.03 0.03 0.09\n")
                           .value();
    Selector selector(0,
                      {.reach = {.ranks = 4,
                                 .is_on_one_host = true,
                                 .shares_memory = true,
                                 .most_on_a_host = 4,
                                 .ranks_on_core = 2},
                       .segment = costs::ShmShape{.ranks = 4,
                                                  .buffer_bytes = kBuffer,
                                                  .part_bytes = kBuffer / 4,
                                                  .ranks_on_core = 2},
                       .layout = *bootstrap::Layout::make(4, "")},
                      {.costs = costs});
    for (const std::size_t bytes : {kKiB, 4 * kKiB}) {
        const auto ways = selector.explain(CollectiveKind::kBroadcast, bytes).value();
        EXPECT_THAT(chosen_of(ways), ::testing::AnyOf("one_shot", "shm_one_shot")) << bytes;
    }
}

TEST(SelectorTest, OfWaysThatTakeAsLongTheOneWithFewMessagesIsChosen) {
    for (const int ranks : {2, 3, 8})
        for (const std::size_t bytes : {1 * kKiB, 64 * kKiB, 1 * kMiB, 16 * kMiB}) {
            Selector selector(0,
                              {.reach = {.ranks = ranks, .is_on_one_host = true},
                               .segment = {},
                               .layout = *bootstrap::Layout::make(ranks, "")},
                              {});
            const auto ways = selector.explain(CollectiveKind::kAllReduce, bytes).value();
            const auto chosen = std::ranges::find(ways, true, &Prediction::is_chosen);
            ASSERT_NE(chosen, ways.end());
            EXPECT_LE(chosen->seconds, 1.1 * ways.front().seconds);
            for (const Prediction& way : ways) {
                const bool is_alike = way.seconds <= 1.1 * ways.front().seconds;
                EXPECT_TRUE(!is_alike || chosen->messages <= way.messages) << way.algorithm();
            }
        }
}

/// Of an all_gather by PAT among 16 ranks over sockets. Its longest message has A blocks, or 8.
schedule::Shape shape_of_pat(std::size_t block) {
    Selector selector(0,
                      {.reach = {.ranks = 16, .is_on_one_host = true},
                       .segment = {},
                       .layout = *bootstrap::Layout::make(16, "")},
                      {.wanted = "all_gather=pat", .tuning = {}});
    return decision_of(selector, CollectiveKind::kAllGather, 16, block).program->shape;
}

TEST(SelectorTest, PatTakesAsManyBlocksInAMessageAsALinkHolds) {
    for (const std::size_t block : {std::size_t{1}, 4 * kKiB, 31 * kKiB})
        EXPECT_EQ(shape_of_pat(block).aggregation, 0) << "all of them: " << block;
    EXPECT_EQ(shape_of_pat(60 * kKiB).aggregation, 4);
    EXPECT_EQ(shape_of_pat(120 * kKiB).aggregation, 2);
    EXPECT_EQ(shape_of_pat(250 * kKiB).aggregation, 1);
}

}  // namespace
}  // namespace pccl::comm
