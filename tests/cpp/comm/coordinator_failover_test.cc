// SPDX-License-Identifier: Apache-2.0

// How ranks go on where rank 0 dies while phases are switched: alike, whatever each has heard.
#include "csrc/comm/phase/coordinator_failover.h"

#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/comm/diagnosis/self_report.h"
#include "csrc/comm/phase/phase_call.h"
#include "csrc/comm/phase/phase_talk.h"

namespace pccl::comm {
namespace {

using ::testing::HasSubstr;
using Outcome = Switching::Outcome;
using Stage = Switching::Stage;
using SwitchResult = Switching::SwitchResult;

constexpr int kSuccessionRanks = 4;

/// What the ranks of a group show, and which of them are there.
struct Party {
    std::array<SwitchState, kSuccessionRanks> shown;
    std::array<std::atomic<bool>, kSuccessionRanks> is_there{};
    std::atomic<Rank> lost{kNoRank};  // as all groups have found out
    std::atomic<int> questions{0};

    Party() {
        for (auto& each : is_there) each.store(true);
    }
};

class MemberGroup final : public PhasedGroup {
   public:
    MemberGroup(Party& party, Rank rank) : party_(party), rank_(rank) {}

    [[nodiscard]] Rank rank() const override { return rank_; }
    [[nodiscard]] int size() const override { return kSuccessionRanks; }
    [[nodiscard]] const std::string& name() const override { return name_; }
    [[nodiscard]] bool share_memory(Rank, Rank) const override { return false; }
    [[nodiscard]] Status check_reverse_route(Rank, bool) const override { return {}; }
    void hold() override {}
    void release() override {}
    [[nodiscard]] Result<bool> drain() override { return true; }
    [[nodiscard]] std::string under_way() const override { return {}; }
    [[nodiscard]] Switching::GroupProgress progress() const override { return {}; }
    void enter(GroupPhase) override {}
    [[nodiscard]] Result<RankStatus> ask(Rank rank, Deadline) const override {
        ++party_.questions;
        if (!party_.is_there[static_cast<std::size_t>(rank)])
            return Status::peer_lost(rank, "nobody is there");
        SwitchState& shown = party_.shown[static_cast<std::size_t>(rank)];
        RankStatus rank_status{.switching = shown.told()};
        shown.note_shown(rank_, rank_status.switching.switch_result);
        return rank_status;
    }
    [[nodiscard]] SwitchState& switching() override {
        return party_.shown[static_cast<std::size_t>(rank_)];
    }
    [[nodiscard]] Status check_interrupt() const override { return Status::ok(); }
    [[nodiscard]] Status health() const override {
        const Rank lost = party_.lost;
        return lost == kNoRank ? Status::ok() : Status::peer_lost(lost, "it is gone");
    }
    void end(const Status&) override {}
    void note_ended_switch(const Status&) override {}

   private:
    const std::string name_ = "world";
    Party& party_;
    const Rank rank_;
};

class CoordinatorFailoverTest : public ::testing::Test {
   protected:
    /// Has these ranks follow, side by side, and gives what each is told. Those of `lost` die once
    /// all of them are ready.
    std::vector<Result<SwitchResult>> follow(const std::vector<Rank>& ranks,
                                             const std::vector<Rank>& lost = {}) {
        ++calls_;
        std::vector<Result<SwitchResult>> told(ranks.size(), Status::aborted("it has not ended"));
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < ranks.size(); ++i)
            threads.emplace_back([&, i] { told[i] = follow_as(ranks[i]); });
        for (const Rank rank : ranks)
            while (!lost.empty() && !is_ready(rank)) std::this_thread::yield();
        for (const Rank rank : lost) party_.is_there[static_cast<std::size_t>(rank)] = false;
        for (std::thread& each : threads) each.join();
        return told;
    }
    [[nodiscard]] bool is_ready(Rank rank) const {
        const Switching shown = party_.shown[static_cast<std::size_t>(rank)].told();
        return shown.number == calls_ && shown.stage == Stage::kReady;
    }
    Result<SwitchResult> follow_as(Rank rank) {
        const auto group = std::make_shared<MemberGroup>(party_, rank);
        const auto read_back = [this, rank] {
            ++looks_;
            reader_ = rank;
            return shown_;
        };
        return PhaseCall({.group = *group,
                          .groups = {group},
                          .proposal = "pairs",
                          .deadline = Deadline::after(std::chrono::seconds(30)),
                          .answer_timeout = std::chrono::seconds(30),
                          .read_back = read_back})
            .follow();
    }
    static void expect_all(const std::vector<Result<SwitchResult>>& told, Outcome outcome) {
        for (const auto& each : told) {
            ASSERT_TRUE(each.is_ok()) << each.status().to_string();
            EXPECT_EQ(each->outcome, outcome);
        }
    }

    Party party_;
    std::uint64_t calls_ = 0;
    Result<bool> shown_ = true;  // by the switches
    std::atomic<int> looks_{0};
    std::atomic<Rank> reader_{kNoRank};
};

TEST_F(CoordinatorFailoverTest, WhoHasHeardItTellsTheOthers) {
    party_.shown[2].tell(
        {.number = 1,
         .stage = Stage::kDone,
         .switch_result = {.number = 1, .outcome = Outcome::kSwitched, .report = "{}"}});
    const auto told = follow({1, 3}, {0});
    expect_all(told, Outcome::kSwitched);
    for (const auto& each : told) EXPECT_TRUE(each->why.is_ok()) << "it is known how it ended";
    EXPECT_EQ(looks_, 0);
}

TEST_F(CoordinatorFailoverTest, WhereNobodyHasHeardItTheLowestReadsTheSwitches) {
    for (const bool is_switched : {true, false}) {
        shown_ = is_switched;
        party_.is_there[0] = true;
        const auto told = follow({1, 2, 3}, {0});
        expect_all(told, is_switched ? Outcome::kSwitched : Outcome::kStayed);
        for (const auto& each : told) {
            EXPECT_EQ(each->why.code(), StatusCode::kPeerLost);
            EXPECT_EQ(each->why.peer(), 0);
        }
        EXPECT_EQ(reader_, 1);
    }
    EXPECT_EQ(looks_, 2);
}

TEST_F(CoordinatorFailoverTest, TheNextOneReadsThemWhereTheLowestIsGoneToo) {
    // It is ready, too, and does not say so any more.
    expect_all(follow({2, 3}, {0, 1}), Outcome::kSwitched);
    EXPECT_EQ(reader_, 2);
}

TEST_F(CoordinatorFailoverTest, NothingWasSwitchedIfOneRankHadNotCome) {
    expect_all(follow({1, 3}, {0}), Outcome::kStayed);
    EXPECT_EQ(looks_, 0);
}

TEST_F(CoordinatorFailoverTest, WhatCannotBeReadIsNotKnown) {
    shown_ = Status::unavailable("switch ocs: no answer to connect within 5 s");
    const auto told = follow({1, 2, 3}, {0});
    expect_all(told, Outcome::kUnknown);
    for (const auto& each : told) {
        EXPECT_EQ(each->why.peer(), 0);
        EXPECT_THAT(each->why.message(), HasSubstr("commit to pairs: switch ocs: no answer"));
    }
}

TEST_F(CoordinatorFailoverTest, RankZeroTellsHowItEndedAlsoWhereAnotherRankIsGoneMeanwhile) {
    party_.shown[0].tell({.number = 1, .stage = Stage::kReady, .proposal = "pairs"});
    party_.is_there[2] = false;
    party_.lost = 2;
    std::thread controller([&] {
        // A commit that takes longer than to find out who is gone.
        while (party_.shown[1].told().stage != Stage::kReady) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        party_.shown[0].tell({.number = 1,
                              .stage = Stage::kDone,
                              .switch_result = {.number = 1, .outcome = Outcome::kSwitched}});
    });
    expect_all(follow({1, 3}), Outcome::kSwitched);
    controller.join();
}

TEST_F(CoordinatorFailoverTest, WhoWaitsAsksSeldom) {
    const TimePoint begun = system_clock().now();
    party_.shown[0].tell({.number = 1, .stage = Stage::kReady, .proposal = "pairs"});
    std::thread controller([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        party_.shown[0].tell({.number = 1,
                              .stage = Stage::kDone,
                              .switch_result = {.number = 1, .outcome = Outcome::kSwitched}});
    });
    expect_all(follow({1}), Outcome::kSwitched);
    controller.join();
    const auto longest_pauses = (system_clock().now() - begun) / std::chrono::milliseconds(20);
    EXPECT_LE(party_.questions, 15 + longest_pauses) << "pauses of 0.1 to 20 ms";
}

TEST(SwitchStateTest, KnowsWhoHasHeardHowASwitchEnded) {
    SwitchState state;
    state.note_shown(2, {});
    EXPECT_FALSE(state.has_shown(2, 1));
    state.note_shown(2, {.number = 3});
    EXPECT_TRUE(state.has_shown(2, 3));
    EXPECT_FALSE(state.has_shown(2, 4));
    EXPECT_FALSE(state.has_shown(1, 3));
    state.note_shown(2, {.number = 1});
    EXPECT_TRUE(state.has_shown(2, 3));
}

/// Who tells asks each rank once: that wakes it, and it asks back.
TEST_F(CoordinatorFailoverTest, WhoHasAskedBackIsNotAskedAgain) {
    const auto leader = std::make_shared<MemberGroup>(party_, 0);
    PhaseTalk talk(*leader, std::chrono::seconds(30));
    talk.own().number = 1;
    for (const Rank rank : {1, 2, 3}) {
        const auto index = static_cast<std::size_t>(rank);
        party_.shown[index].tell({.number = 1, .stage = Stage::kReady, .proposal = "pairs"});
        party_.shown[0].note_shown(rank, {.number = 1});
    }
    talk.tell({.outcome = Outcome::kSwitched});
    EXPECT_EQ(party_.questions, 3);
    EXPECT_EQ(party_.shown[0].told().switch_result.outcome, Outcome::kSwitched);
}

TEST_F(CoordinatorFailoverTest, WhoHasAskedSinceItWasAskedHasNews) {
    const auto leader = std::make_shared<MemberGroup>(party_, 0);
    PhaseTalk talk(*leader, std::chrono::seconds(30));
    const auto asks = [this](Rank rank) {
        ASSERT_TRUE(MemberGroup(party_, rank).ask(0, Deadline::never()).is_ok());
    };
    asks(1);
    EXPECT_EQ(talk.with_news({1, 2, 3}), std::vector<Rank>({1}));
    ASSERT_TRUE(talk.ask(1).is_ok());
    EXPECT_EQ(talk.with_news({1, 2, 3}), std::vector<Rank>());
    asks(2);
    asks(3);
    EXPECT_EQ(talk.with_news({1, 2}), std::vector<Rank>({2})) << "no other is missing";
}

PhaseCallOptions long_wait_of(const std::shared_ptr<MemberGroup>& leader) {
    return {.group = *leader,
            .groups = {leader},
            .proposal = "pairs",
            .deadline = Deadline::after(std::chrono::seconds(60)),
            .answer_timeout = std::chrono::seconds(60)};
}

/// However often strangers ask this process.
TEST_F(CoordinatorFailoverTest, RankZeroFindsOutThatOneIsGoneWhoNeverAsks) {
    for (const std::size_t rank : {1U, 2U})
        party_.shown[rank].tell({.number = 1, .stage = Stage::kReady, .proposal = "pairs"});
    std::atomic<bool> is_over = false;
    std::thread strangers([&] {
        while (!is_over) question_bell().ring();
    });
    const auto leader = std::make_shared<MemberGroup>(party_, 0);
    PhaseCall call(long_wait_of(leader));
    std::thread death([&] {
        while (party_.questions < 3) std::this_thread::yield();  // it was asked, and not ready
        party_.is_there[3] = false;
    });
    const Status gathered = call.gather();
    is_over = true;
    strangers.join();
    death.join();
    EXPECT_EQ(gathered.code(), StatusCode::kPeerLost);
    EXPECT_EQ(gathered.peer(), 3);
}

/// Each once where all are ready, and whoever is not once more when it asks.
TEST_F(CoordinatorFailoverTest, RankZeroHearsOfWhoGetsReadyLate) {
    for (const std::size_t rank : {1U, 2U})
        party_.shown[rank].tell({.number = 1, .stage = Stage::kReady, .proposal = "pairs"});
    std::thread late([&] {
        while (party_.questions < 3) std::this_thread::yield();
        party_.shown[3].tell({.number = 1, .stage = Stage::kReady, .proposal = "pairs"});
        EXPECT_TRUE(MemberGroup(party_, 3).ask(0, Deadline::never()).is_ok());
        question_bell().ring();
    });
    const auto leader = std::make_shared<MemberGroup>(party_, 0);
    PhaseCall call(long_wait_of(leader));
    EXPECT_TRUE(call.gather().is_ok());
    late.join();
}

TEST(QuestionBellTest, EndsARest) {
    QuestionBell bell;
    const std::uint64_t before = bell.rings();
    std::thread resting([&] { bell.rest(before, std::chrono::hours(1)); });
    bell.ring();
    resting.join();
    bell.rest(before, std::chrono::hours(1));  // it has rung since
}

}  // namespace
}  // namespace pccl::comm
