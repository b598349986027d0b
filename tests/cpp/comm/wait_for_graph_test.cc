// SPDX-License-Identifier: Apache-2.0

// Who is blamed for a stall, by what the ranks say.
#include "csrc/comm/diagnosis/wait_for_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "csrc/collective/fingerprint.h"
#include "csrc/transport/control/inquiry.h"

namespace pccl::comm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kInquestSequence = 7;

RankStatus waiting_for(std::vector<Rank> ranks) {
    return {
        .sequence = kInquestSequence, .operation = "all_reduce #7", .awaited = std::move(ranks)};
}

/// Rank 0 waits for rank 1 in a group of 5.
Status finding(std::map<Rank, Result<RankStatus>> answers) {
    const Stall stall{
        .self = 0, .ranks = 5, .sequence = kInquestSequence, .awaited = {{.rank = 1}}};
    return find_culprit(stall, [&](Rank rank) -> Result<RankStatus> {
        const auto found = answers.find(rank);
        if (found != answers.end()) return found->second;
        ADD_FAILURE() << "rank " << rank << " was asked";
        return Status::internal("nobody should ask");
    });
}

TEST(WaitForGraphTest, BlamesTheSilentRankBehindOthers) {
    const Status status = finding(
        {{1, waiting_for({2})}, {2, waiting_for({3, 0})}, {3, Status::timeout("no answer", 3)}});
    EXPECT_EQ(status.code(), StatusCode::kTimeout);
    EXPECT_EQ(status.peer(), 3);
    EXPECT_THAT(status.message(), HasSubstr("rank 3 does not answer"));
}

TEST(WaitForGraphTest, BlamesTheRankThatHasNotCome) {
    const Status status = finding({{1, waiting_for({4})}, {4, RankStatus{.sequence = 6}}});
    EXPECT_EQ(status.code(), StatusCode::kTimeout);
    EXPECT_EQ(status.peer(), 4);
    EXPECT_THAT(status.message(), HasSubstr("has not called it"));
}

TEST(WaitForGraphTest, LooksBehindARankThatIsHeldUpInAnEarlierOne) {
    RankStatus held_up = waiting_for({3});
    held_up.sequence = kInquestSequence - 1;
    const Status stopped = finding({{1, held_up}, {3, Status::timeout("no answer", 3)}});
    EXPECT_EQ(stopped.peer(), 3);
    const Status slow = finding({{1, held_up}, {3, waiting_for({})}});
    EXPECT_EQ(slow.peer(), 1);
    EXPECT_THAT(slow.message(), HasSubstr("rank 1 has not called it"));
}

TEST(WaitForGraphTest, BlamesNoRankForWhatItCouldNotSay) {
    const RankStatus busy{.sequence = kInquestSequence - 1, .is_whole = false};
    const Status status = finding({{1, busy}});
    EXPECT_EQ(status.code(), StatusCode::kTimeout);
    EXPECT_THAT(status.message(), Not(HasSubstr("has not called it")));
}

TEST(WaitForGraphTest, BlamesTheRankThatIsGone) {
    const Status status =
        finding({{1, waiting_for({2})}, {2, Status::peer_lost(2, "rank 2: refused")}});
    EXPECT_EQ(status.code(), StatusCode::kPeerLost);
    EXPECT_EQ(status.peer(), 2);
}

TEST(WaitForGraphTest, TakesOverWhatAnotherFoundOut) {
    const Status status =
        finding({{1, RankStatus{.broken = Status::mismatch(3, "rank 1 and rank 3 differ")}}});
    EXPECT_EQ(status.code(), StatusCode::kMismatch);
    EXPECT_EQ(status.peer(), 3);
}

TEST(WaitForGraphTest, EndsWhereRanksWaitInACircle) {
    const Status status = finding({{1, waiting_for({2})}, {2, waiting_for({1, 0})}});
    EXPECT_EQ(status.code(), StatusCode::kTimeout);
    EXPECT_EQ(status.peer(), 1);
}

TEST(WaitForGraphTest, RanksThatCannotBeAreNotAsked) {
    EXPECT_EQ(finding({{1, waiting_for({99, -7, 5})}}).peer(), 1);
}

abi::CollectiveHeader call(std::uint8_t kind, std::uint64_t count, std::uint32_t root) {
    abi::CollectiveHeader header{};
    header.magic = abi::kCollectiveMagic;
    header.kind = kind;
    header.root = static_cast<std::uint16_t>(root);
    header.sequence = kInquestSequence;
    header.count = count;
    return header;
}

abi::CollectiveHeader of_pairs(abi::CollectiveHeader header) {
    header.lengths = abi::kLengthsOfPairs;
    return header;
}

constexpr auto kBroadcast = static_cast<std::uint8_t>(schedule::CollectiveKind::kBroadcast);
constexpr auto kAllToAll = static_cast<std::uint8_t>(schedule::CollectiveKind::kAllToAll);

TEST(WaitForGraphTest, SeesThatRootsDifferThoughNobodySends) {
    const Stall stall{.self = 0,
                      .ranks = 2,
                      .sequence = kInquestSequence,
                      .header = call(kBroadcast, 8, 1),
                      .awaited = {{.rank = 1}}};
    const RankStatus other{.sequence = kInquestSequence + 1, .recent = {call(kBroadcast, 8, 0)}};
    const Status status = find_culprit(stall, [&](Rank) { return other; });
    EXPECT_EQ(status.code(), StatusCode::kMismatch);
    EXPECT_EQ(status.peer(), 1);
    EXPECT_THAT(status.message(), HasSubstr("root 1"));
    EXPECT_THAT(status.message(), HasSubstr("root 0"));
}

TEST(WaitForGraphTest, LetsPairsDisagreeAboutLengthsThatAreTheirOwn) {
    const Stall stall{
        .self = 0, .sequence = kInquestSequence, .header = of_pairs(call(kAllToAll, 8, 0))};
    EXPECT_TRUE(why_different(stall, 1, {.recent = {of_pairs(call(kAllToAll, 9, 0))}}).is_ok());
    EXPECT_FALSE(why_different(stall, 1, {.recent = {call(kAllToAll, 8, 0)}}).is_ok())
        << "there all are said to have one length";
    EXPECT_FALSE(why_different(stall, 1, {.recent = {call(kBroadcast, 8, 0)}}).is_ok());
    EXPECT_TRUE(why_different(stall, 1, {.recent = {}}).is_ok());
}

TEST(WaitForGraphTest, SeesGroupsInDifferentOrders) {
    RankStatus other{
        .sequence = kInquestSequence - 1,
        .other_group_wait = {
            .name = "B", .operation = "barrier #3", .awaits_asker = true, .lacks_asker = true}};
    const Status status = finding({{1, other}});
    EXPECT_EQ(status.code(), StatusCode::kMismatch);
    EXPECT_EQ(status.peer(), 1);
    EXPECT_THAT(status.message(), HasSubstr("barrier #3 of group B"));
    other.other_group_wait.awaits_asker = false;
    EXPECT_EQ(finding({{1, other}}).code(), StatusCode::kMismatch) << "it waits for a third";
    const Stall stall{.sequence = kInquestSequence};
    EXPECT_FALSE(is_crossed(stall, other)) << "that one may still come";
    other.other_group_wait.lacks_asker = false;
    EXPECT_EQ(finding({{1, other}}).code(), StatusCode::kTimeout);
    EXPECT_THAT(finding({{1, other}}).message(), HasSubstr("waits in barrier #3 of group B"));
}

TEST(FingerprintTest, RemembersWhatNobodyCompared) {
    abi::CollectiveHeader ours = call(kBroadcast, 8, 0);
    abi::CollectiveHeader theirs = ours;
    ours.history = history_after(call(kBroadcast, 8, 0));
    theirs.history = history_after(call(kBroadcast, 8, 1));
    const Status status = compare(ours, theirs, {.self = 0, .peer = 1});
    EXPECT_EQ(status.code(), StatusCode::kMismatch);
    EXPECT_THAT(status.message(), HasSubstr("a collective before"));
    EXPECT_EQ(history_after(of_pairs(call(kAllToAll, 8, 0))),
              history_after(of_pairs(call(kAllToAll, 9, 0))));
    EXPECT_NE(history_after(call(kAllToAll, 8, 0)), history_after(call(kAllToAll, 9, 0)));
}

TEST(RankStatusTest, ComesBack) {
    const RankStatus rank_status{.broken = Status::timeout("late", 4),
                                 .sequence = 1ULL << 40,
                                 .operation = "broadcast #9",
                                 .awaited = {3, 1},
                                 .gpu_operation = "broadcast #3",
                                 .gpu_awaited = {5},
                                 .recent = {call(kBroadcast, 8, 1), call(kAllToAll, 0, 0)},
                                 .other_group_wait = {.group = {1, 2},
                                                      .name = "B",
                                                      .rank = 2,
                                                      .operation = "all_reduce #1",
                                                      .sequence = 1,
                                                      .awaited = {0}},
                                 .shrinking = {.stage = Shrinking::Stage::kDoubtful,
                                               .lost = 2,
                                               .call = {1},
                                               .list = {2},
                                               .pact = {3},
                                               .staying = 5,
                                               .left_out = {0, 4}},
                                 .is_whole = false,
                                 .has_one_thread = false};
    const auto again = RankStatus::parse(rank_status.serialise());
    ASSERT_TRUE(again.is_ok()) << again.status().to_string();
    EXPECT_EQ(again->broken.to_string(), rank_status.broken.to_string());
    EXPECT_EQ(again->broken.peer(), 4);
    EXPECT_EQ(again->sequence, rank_status.sequence);
    EXPECT_EQ(again->operation, rank_status.operation);
    EXPECT_EQ(again->awaited, rank_status.awaited);
    EXPECT_EQ(again->gpu_operation, rank_status.gpu_operation);
    EXPECT_EQ(again->gpu_awaited, rank_status.gpu_awaited);
    ASSERT_EQ(again->recent.size(), 2U);
    EXPECT_EQ(describe(again->recent[0]), describe(rank_status.recent[0]));
    EXPECT_EQ(again->other_group_wait.group, rank_status.other_group_wait.group);
    EXPECT_EQ(again->other_group_wait.rank, 2);
    EXPECT_EQ(again->other_group_wait.operation, "all_reduce #1");
    EXPECT_EQ(again->other_group_wait.sequence, 1U);
    EXPECT_EQ(again->other_group_wait.awaited, std::vector<Rank>{0});
    EXPECT_EQ(again->shrinking, rank_status.shrinking);
    EXPECT_FALSE(again->is_whole);
    EXPECT_FALSE(again->has_one_thread);
}

TEST(RankStatusTest, TheLongestFitsIntoAnAnswer) {
    const std::string endless(100'000, 'x');
    const std::vector<Rank> many(1000, 1);
    const RankStatus most{
        .broken = Status::timeout(endless, 1),
        .operation = endless,
        .awaited = many,
        .gpu_operation = endless,
        .gpu_awaited = many,
        .recent = std::vector(1000, call(kBroadcast, 8, 1)),
        .other_group_wait = {.name = endless, .operation = endless, .awaited = many},
        .shrinking = {.stage = Shrinking::Stage::kDecided, .left_out = many}};
    const std::string bytes = most.serialise();
    EXPECT_LE(bytes.size(), transport::kLongestAnswer);
    EXPECT_TRUE(RankStatus::parse(bytes).is_ok());
}

TEST(RankStatusTest, RefusesWhatIsCutShort) {
    const std::string whole = waiting_for({1, 2}).serialise();
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
        EXPECT_FALSE(RankStatus::parse(std::string_view(whole).substr(0, bytes)).is_ok());
    EXPECT_FALSE(RankStatus::parse(whole + "x").is_ok());
}

}  // namespace
}  // namespace pccl::comm
