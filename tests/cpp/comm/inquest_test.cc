// Who is blamed for a stall, by what the ranks say.
#include "csrc/comm/inquest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace pccl::comm {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kSequence = 7;

Situation waiting_for(std::vector<Rank> ranks) {
    return {.sequence = kSequence, .operation = "all_reduce #7", .awaited = std::move(ranks)};
}

/// Rank 0 waits for rank 1 in a group of 5.
Status verdict(std::map<Rank, Result<Situation>> answers) {
    const Stall stall{.self = 0, .ranks = 5, .sequence = kSequence, .awaited = {{1, true}}};
    return find_culprit(stall, [&](Rank rank) -> Result<Situation> {
        const auto found = answers.find(rank);
        if (found != answers.end()) return found->second;
        ADD_FAILURE() << "rank " << rank << " was asked";
        return Status::internal("nobody should ask");
    });
}

TEST(InquestTest, BlamesTheSilentRankBehindOthers) {
    const Status status = verdict(
        {{1, waiting_for({2})}, {2, waiting_for({3, 0})}, {3, Status::timeout("no answer", 3)}});
    EXPECT_EQ(status.code(), StatusCode::kTimeout);
    EXPECT_EQ(status.peer(), 3);
    EXPECT_THAT(status.message(), HasSubstr("rank 3 does not answer"));
}

TEST(InquestTest, BlamesTheRankThatHasNotCome) {
    const Status status = verdict({{1, waiting_for({4})}, {4, Situation{.sequence = 6}}});
    EXPECT_EQ(status.code(), StatusCode::kTimeout);
    EXPECT_EQ(status.peer(), 4);
    EXPECT_THAT(status.message(), HasSubstr("has not called it"));
}

TEST(InquestTest, BlamesTheRankThatIsGone) {
    const Status status =
        verdict({{1, waiting_for({2})}, {2, Status::peer_lost(2, "rank 2: refused")}});
    EXPECT_EQ(status.code(), StatusCode::kPeerLost);
    EXPECT_EQ(status.peer(), 2);
}

TEST(InquestTest, TakesOverWhatAnotherFoundOut) {
    const Status status =
        verdict({{1, Situation{.broken = Status::mismatch(3, "rank 1 and rank 3 differ")}}});
    EXPECT_EQ(status.code(), StatusCode::kMismatch);
    EXPECT_EQ(status.peer(), 3);
}

TEST(InquestTest, EndsWhereRanksWaitInACircle) {
    const Status status = verdict({{1, waiting_for({2})}, {2, waiting_for({1, 0})}});
    EXPECT_EQ(status.code(), StatusCode::kTimeout);
    EXPECT_EQ(status.peer(), 1);
}

TEST(InquestTest, RanksThatCannotBeAreNotAsked) {
    EXPECT_EQ(verdict({{1, waiting_for({99, -7, 5})}}).peer(), 1);
}

TEST(SituationTest, ComesBack) {
    const Situation situation{.broken = Status::timeout("late", 4),
                              .sequence = 1ULL << 40,
                              .operation = "broadcast #9",
                              .awaited = {3, 1}};
    const auto again = Situation::parse(situation.serialise());
    ASSERT_TRUE(again.is_ok()) << again.status().to_string();
    EXPECT_EQ(again->broken.to_string(), situation.broken.to_string());
    EXPECT_EQ(again->broken.peer(), 4);
    EXPECT_EQ(again->sequence, situation.sequence);
    EXPECT_EQ(again->operation, situation.operation);
    EXPECT_EQ(again->awaited, situation.awaited);
}

TEST(SituationTest, RefusesWhatIsCutShort) {
    const std::string whole = waiting_for({1, 2}).serialise();
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
        EXPECT_FALSE(Situation::parse(std::string_view(whole).substr(0, bytes)).is_ok());
    EXPECT_FALSE(Situation::parse(whole + "x").is_ok());
}

}  // namespace
}  // namespace pccl::comm
