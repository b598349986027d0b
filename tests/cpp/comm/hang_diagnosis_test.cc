// SPDX-License-Identifier: Apache-2.0

// Who is blamed, by what a diagnosis sees of peers, asks them and hears; and that it waits for no
// lock that somebody holds.
#include "csrc/comm/diagnosis/hang_diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

namespace pccl::comm {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kHungRanks = 4;
constexpr std::uint64_t kHungSequence = 7;

/// Rank 0 waits for rank 1.
class StalledGroup final : public DiagnosedGroup {
   public:
    StalledGroup() {
        front.emplace(Stall{.self = 0,
                            .ranks = kHungRanks,
                            .sequence = kHungSequence,
                            .awaited = {{.rank = 1}},
                            .deadline = Deadline::after(Duration::zero())});
    }

    [[nodiscard]] std::uint64_t sequence() const override { return kHungSequence; }
    [[nodiscard]] bool is_over() const override { return !end_.cause.is_ok(); }
    [[nodiscard]] const std::atomic<bool>& aborted() const override { return aborted_; }
    [[nodiscard]] std::mutex& mutex() const override { return mutex_; }
    [[nodiscard]] const runtime::GroupUsage& usage() const override { return usage_; }
    [[nodiscard]] const GroupEnd& ended() const override { return end_; }
    [[nodiscard]] std::optional<Stall> stall() const override { return front; }
    [[nodiscard]] bool uses_links() const override { return is_on_links; }
    [[nodiscard]] AwaitedRanks awaited() const override {
        return front ? front->awaited : AwaitedRanks{};
    }
    [[nodiscard]] Status health() const override { return end_.shown; }
    [[nodiscard]] Status check_interrupt() const override { return Status::ok(); }
    bool progress() override { return on_progress(); }
    void end(const Status& why) override { end_ = {why, why}; }

    std::optional<Stall> front;
    bool is_on_links = true;
    std::function<bool()> on_progress = [] { return false; };

   private:
    mutable std::mutex mutex_;
    runtime::GroupUsage usage_;
    std::atomic<bool> aborted_{false};
    GroupEnd end_;
};

class ScriptedPeers final : public PeerView {
   public:
    explicit ScriptedPeers(const runtime::Runtime& runtime)
        : directory_(runtime, {.group = {1}, .secret = {2}}, {.rank = 0, .size = kHungRanks}) {
        std::vector<bootstrap::Endpoint> endpoints(kHungRanks);
        for (Rank rank = 0; rank < kHungRanks; ++rank)
            endpoints[static_cast<std::size_t>(rank)].rank = rank;
        directory_.register_endpoints(std::move(endpoints));
    }

    [[nodiscard]] const runtime::PeerDirectory& directory() const override { return directory_; }
    [[nodiscard]] Rank reaching() const override { return kNoRank; }
    [[nodiscard]] Result<RankStatus> query(Rank rank, Deadline) const override {
        requested.push_back(rank);
        const auto answer = answers.find(rank);
        if (answer == answers.end()) return Status::timeout("no answer", rank);
        return answer->second;
    }
    Status notify(Rank rank, const Status&, Deadline) const override {
        received.push_back(rank);
        return Status::ok();
    }
    [[nodiscard]] Status look() override { return Status::ok(); }
    [[nodiscard]] Status look(Rank rank) override {
        looked_at.push_back(rank);
        const auto gone = shown.find(rank);
        return gone == shown.end() ? Status::ok() : gone->second;
    }
    [[nodiscard]] Status look_for_failure() override { return failure; }
    [[nodiscard]] bool has_segment() const override { return is_on_one_host; }
    [[nodiscard]] std::vector<runtime::PeerPath> paths() const override { return {}; }
    [[nodiscard]] bool has_link_from(Rank) override {
        const bool is_there = looks_before_link-- <= 0;
        has_come = has_come || looks_before_link == -1;
        return is_there;
    }
    [[nodiscard]] bool has_new_link() const override { return std::exchange(has_come, false); }
    [[nodiscard]] Status compare_latest(const abi::CollectiveHeader&) override { return mismatch; }

    std::map<Rank, Status> shown;  // by links and segment
    std::map<Rank, Result<RankStatus>> answers;
    Status failure;
    Status mismatch;
    int looks_before_link = -1;     // for it, until one from each rank is there
    mutable bool has_come = false;  // that one, and nobody has gone on with it
    bool is_on_one_host = false;
    std::vector<Rank> looked_at;
    mutable std::vector<Rank> requested;
    mutable std::vector<Rank> received;

   private:
    runtime::PeerDirectory directory_;
};

RankStatus waits_for(Rank rank) { return {.sequence = kHungSequence, .awaited = {rank}}; }

class HangDiagnosisTest : public ::testing::Test {
   protected:
    const std::shared_ptr<runtime::Runtime> runtime_ =
        runtime::Runtime::create(transport::TransportKind::kTcp).value();
    StalledGroup group_;
    ScriptedPeers peers_{*runtime_};
    HangDiagnosis diagnosis_{{.group = group_, .peers = peers_, .runtime = *runtime_}};
};

TEST_F(HangDiagnosisTest, WhoIsSeenToBeGoneIsBlamed) {
    peers_.shown[1] = Status::peer_lost(1, "rank 1 closed its connection");
    diagnosis_.look_around(milliseconds(5));
    EXPECT_THAT(peers_.looked_at, IsEmpty()) << "an operation may take so long";
    diagnosis_.look_around(milliseconds(20));
    EXPECT_EQ(group_.ended().cause.code(), StatusCode::kPeerLost);
    EXPECT_EQ(group_.ended().cause.peer(), 1);
    EXPECT_THAT(peers_.requested, IsEmpty());
}

TEST_F(HangDiagnosisTest, WhatAPeerDidBeforeItLeftStillCounts) {
    peers_.shown[1] = Status::peer_lost(1, "rank 1 closed its connection");
    group_.on_progress = [] { return true; };
    diagnosis_.look_around(milliseconds(20));
    EXPECT_FALSE(group_.is_over());
}

TEST_F(HangDiagnosisTest, NobodyLooksWhileAnotherThreadMovesTheGroup) {
    peers_.shown[1] = Status::peer_lost(1, "rank 1 closed its connection");
    const std::lock_guard moving(group_.mutex());
    std::thread([this] { diagnosis_.look_around(milliseconds(20)); }).join();
    EXPECT_FALSE(group_.is_over());
}

TEST_F(HangDiagnosisTest, AfterAWhileARankIsQueriedAndReportsTheLostOne) {
    peers_.answers.emplace(1, RankStatus{.broken = Status::peer_lost(3, "rank 3 is gone")});
    diagnosis_.look_around(milliseconds(400));
    EXPECT_THAT(peers_.requested, ElementsAre(1));
    EXPECT_EQ(group_.ended().cause.code(), StatusCode::kPeerLost);
    EXPECT_EQ(group_.ended().cause.peer(), 3);
}

TEST_F(HangDiagnosisTest, AtTheDeadlineTheSilentRankBehindOthersIsBlamed) {
    peers_.answers.emplace(1, waits_for(2));
    diagnosis_.on_deadline();
    EXPECT_THAT(peers_.requested, ElementsAre(1, 2));
    EXPECT_EQ(group_.ended().cause.code(), StatusCode::kTimeout);
    EXPECT_EQ(group_.ended().cause.peer(), 2);
}

TEST_F(HangDiagnosisTest, TheSenderOfAShortNoticeIsQueriedForTheReason) {
    const Status notice =
        Status::mismatch(2, "rank 2 has left the group: it called something else");
    peers_.answers.emplace(1, RankStatus{.broken = notice, .reported_by = 2});
    peers_.answers.emplace(2, RankStatus{.broken = Status::mismatch(0, "in different orders")});
    diagnosis_.on_deadline();
    EXPECT_THAT(peers_.requested, ElementsAre(1, 2));
    EXPECT_EQ(group_.ended().cause.code(), StatusCode::kMismatch);
    EXPECT_THAT(group_.ended().cause.message(), HasSubstr("in different orders"));
}

TEST_F(HangDiagnosisTest, AShortNoticeCountsWhereWhoGaveItIsSilent) {
    const Status notice =
        Status::mismatch(2, "rank 2 has left the group: it called something else");
    for (const Rank reporter : {0, 2, kHungRanks, -7}) {
        peers_.answers.insert_or_assign(1, RankStatus{.broken = notice, .reported_by = reporter});
        const auto answer = diagnosis_.survey().query(1, Deadline::never());
        ASSERT_TRUE(answer.is_ok());
        EXPECT_EQ(answer->broken.message(), notice.message()) << reporter;
    }
    EXPECT_THAT(peers_.requested, ElementsAre(1, 1, 2, 1, 1)) << "nobody asks itself, or no rank";
}

TEST_F(HangDiagnosisTest, ARelayingRankReportsItsSource) {
    diagnosis_.receive_reason(2, Status::mismatch(3, "it called something else than rank 3"));
    EXPECT_EQ(RankStatus::parse(diagnosis_.report().answer(1)).value().reported_by, 2);
    group_.end(Status::mismatch(3, "rank 3 runs broadcast"));
    EXPECT_EQ(RankStatus::parse(diagnosis_.report().answer(1)).value().reported_by, kNoRank);
}

TEST_F(HangDiagnosisTest, NoRankIsQueriedBeforeTheDeadline) {
    group_.front->deadline = Deadline::never();
    diagnosis_.on_deadline();
    EXPECT_THAT(peers_.requested, IsEmpty());
    EXPECT_FALSE(group_.is_over());
}

TEST_F(HangDiagnosisTest, ACollectiveThatEndsDuringTheGraphWalkIsNoConcernOfIt) {
    group_.on_progress = [this] {
        group_.front->sequence = kHungSequence + 1;
        return true;
    };
    diagnosis_.on_deadline();
    EXPECT_FALSE(group_.is_over());
}

TEST_F(HangDiagnosisTest, ARankThatLeftIsQueriedBeforeItIsBlamed) {
    peers_.answers.emplace(1, RankStatus{.broken = Status::peer_lost(2, "rank 2 is gone")});
    const Status gone = Status::peer_lost(1, "rank 1 closed its connection");
    EXPECT_EQ(diagnosis_.reconsidered(gone, {}).peer(), 2);
    EXPECT_THAT(peers_.requested, ElementsAre(1));
}

TEST_F(HangDiagnosisTest, AGroupGoesOnWithTheLinkThatComesAfterItsRankHasLeft) {
    const Status gone = Status::peer_lost(1, "rank 1 has left the group");
    peers_.looks_before_link = 1;
    EXPECT_TRUE(diagnosis_.reconsidered(gone, {}).is_ok());
    EXPECT_EQ(diagnosis_.reconsidered(gone, {}).peer(), 1) << "the link has shown no more";
}

TEST_F(HangDiagnosisTest, ALinkMayComeAfterASegmentHasShownThatItsRankHasLeft) {
    const Status gone = Status::peer_lost(1, "rank 1 has left the group");
    peers_.is_on_one_host = true;
    peers_.looks_before_link = 3;
    EXPECT_TRUE(diagnosis_.reconsidered(gone, {}).is_ok());
    EXPECT_EQ(diagnosis_.reconsidered(gone, {}).peer(), 1) << "the link has shown no more";
}

TEST_F(HangDiagnosisTest, ALinkThatArrivesDuringTheQueryCountsToo) {
    const Status gone = Status::peer_lost(1, "rank 1 has left the group");
    peers_.has_come = true;
    EXPECT_TRUE(diagnosis_.reconsidered(gone, {}).is_ok());
}

TEST_F(HangDiagnosisTest, InSharedMemoryAloneNoLinkIsWaitedFor) {
    const Status gone = Status::peer_lost(1, "rank 1 has left the group");
    peers_.is_on_one_host = true;
    group_.is_on_links = false;
    peers_.looks_before_link = 1'000'000;
    EXPECT_EQ(diagnosis_.reconsidered(gone, {}).peer(), 1);
    EXPECT_GE(peers_.looks_before_link, 1'000'000 - 2);
}

TEST_F(HangDiagnosisTest, ARankThatNeverConnectedIsLost) {
    peers_.looks_before_link = 1'000'000;
    EXPECT_EQ(diagnosis_.reconsidered(Status::peer_lost(1, "rank 1 is gone"), {}).peer(), 1);
}

TEST_F(HangDiagnosisTest, NoRankIsQueriedWhereTheUserEndsTheGroup) {
    const Status aborted = Status::aborted("abort was called on this group");
    EXPECT_EQ(diagnosis_.reconsidered(aborted, {}).code(), StatusCode::kAborted);
    EXPECT_THAT(peers_.requested, IsEmpty());
}

TEST_F(HangDiagnosisTest, BothSidesOfAMismatchPrecedeTheReportOfAnotherRank) {
    peers_.mismatch = Status::mismatch(2, "rank 0 runs broadcast and rank 2 runs all_reduce");
    diagnosis_.receive_reason(1, Status::mismatch(2, "told"));
    EXPECT_THAT(diagnosis_.reconsidered(diagnosis_.received_reason(), {}).message(),
                HasSubstr("broadcast"));
}

TEST_F(HangDiagnosisTest, OfTwoOthersThatDifferTheOneThatDiffersFromThisRankIsNamed) {
    const auto called = [](std::uint16_t root) {
        abi::CollectiveHeader header{};
        header.magic = abi::kCollectiveMagic;
        header.root = root;
        header.sequence = kHungSequence;
        return header;
    };
    const Status received_reason = Status::mismatch(2, "rank 1 called something else than rank 2");
    diagnosis_.receive_reason(1, received_reason);
    peers_.answers.emplace(1, RankStatus{.sequence = kHungSequence, .recent = {called(1)}});
    const Status found = diagnosis_.reconsidered(received_reason, called(0));
    EXPECT_EQ(found.code(), StatusCode::kMismatch) << found.to_string();
    EXPECT_EQ(found.peer(), 1) << found.to_string();
    EXPECT_EQ(diagnosis_.reconsidered(received_reason, called(1)).peer(), 2);
}

TEST_F(HangDiagnosisTest, TheFirstReasonStays) {
    EXPECT_FALSE(diagnosis_.has_received_reason());
    diagnosis_.receive_reason(1, Status::peer_lost(3, "rank 3 is gone"));
    diagnosis_.receive_reason(2, Status::peer_lost(1, "rank 1 is gone"));
    ASSERT_TRUE(diagnosis_.has_received_reason());
    EXPECT_EQ(diagnosis_.received_reason().peer(), 3);
}

TEST_F(HangDiagnosisTest, NotifiesAllRanksExceptTheBlamedOne) {
    const Status cause = Status::peer_lost(2, "rank 2 is gone");
    group_.end(cause);
    diagnosis_.note_unnotified({1, 2, 3});
    diagnosis_.report_end();
    EXPECT_THAT(peers_.received, ElementsAre(1, 3));
}

TEST_F(HangDiagnosisTest, AnAnswerWaitsForNobodyWhoHoldsTheGroup) {
    std::string answer;
    {
        const std::lock_guard held(group_.mutex());
        std::thread([&] { answer = diagnosis_.report().answer(1); }).join();
    }
    const auto reported = RankStatus::parse(answer);
    ASSERT_TRUE(reported.is_ok()) << reported.status().to_string();
    EXPECT_FALSE(reported->is_whole);
    EXPECT_EQ(reported->sequence, kHungSequence);
    EXPECT_THAT(reported->awaited, IsEmpty());
    const auto whole = RankStatus::parse(diagnosis_.report().answer(1));
    ASSERT_TRUE(whole.is_ok()) << whole.status().to_string();
    EXPECT_TRUE(whole->is_whole);
    EXPECT_THAT(whole->awaited, ElementsAre(1));
}

TEST_F(HangDiagnosisTest, IsBlockedOnlyWhileAThreadWaits) {
    EXPECT_EQ(diagnosis_.group_probe().blocked_in().operation, "");
    {
        const auto waits = diagnosis_.report().note_waiter();
        const OtherGroupWait there = diagnosis_.group_probe().blocked_in();
        EXPECT_NE(there.operation, "");
        EXPECT_EQ(there.sequence, kHungSequence);
        EXPECT_THAT(there.awaited, ElementsAre(1));
    }
    EXPECT_EQ(diagnosis_.group_probe().blocked_in().operation, "");
}

}  // namespace
}  // namespace pccl::comm
