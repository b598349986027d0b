// SPDX-License-Identifier: Apache-2.0

// Who is blamed for a stall, by what the ranks say.
#include "csrc/comm/diagnosis/wait_for_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "csrc/transport/control/inquiry.h"
#include "tests/cpp/collective/collective_calls.h"
#include "tests/cpp/comm/waiting_ranks.h"

namespace pccl::comm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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

TEST(WaitForGraphTest, BlamesNoRankForAMissingAnswer) {
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

TEST(WaitForGraphTest, RanksOutOfRangeAreNotQueried) {
    EXPECT_EQ(finding({{1, waiting_for({99, -7, 5})}}).peer(), 1);
}

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
    RankStatus other{.sequence = kInquestSequence - 1,
                     .other_group_wait = {.name = "B",
                                          .operation = "barrier #3",
                                          .awaits_requester = true,
                                          .lacks_requester = true}};
    const Status status = finding({{1, other}});
    EXPECT_EQ(status.code(), StatusCode::kMismatch);
    EXPECT_EQ(status.peer(), 1);
    EXPECT_THAT(status.message(), HasSubstr("barrier #3 of group B"));
    other.other_group_wait.awaits_requester = false;
    EXPECT_EQ(finding({{1, other}}).code(), StatusCode::kMismatch) << "it waits for a third";
    const Stall stall{.sequence = kInquestSequence};
    EXPECT_FALSE(is_crossed(stall, other)) << "that one may still come";
    other.other_group_wait.lacks_requester = false;
    EXPECT_EQ(finding({{1, other}}).code(), StatusCode::kTimeout);
    EXPECT_THAT(finding({{1, other}}).message(), HasSubstr("waits in barrier #3 of group B"));
}

}  // namespace
}  // namespace pccl::comm
