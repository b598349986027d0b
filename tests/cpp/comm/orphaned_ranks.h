// SPDX-License-Identifier: Apache-2.0

// Ranks that switch phases of a network, and whose rank 0 may die.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/comm/phase/coordinator_failover.h"
#include "csrc/comm/phase/phase_call.h"
#include "csrc/comm/phase/phase_talk.h"

namespace pccl::comm {

using Outcome = Switching::Outcome;
using Stage = Switching::Stage;
using SwitchResult = Switching::SwitchResult;

inline constexpr int kSuccessionRanks = 4;

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
    [[nodiscard]] Result<RankStatus> query(Rank rank, Deadline) const override {
        ++party_.questions;
        if (!party_.is_there[static_cast<std::size_t>(rank)])
            return Status::peer_lost(rank, "nobody is there");
        SwitchState& shown = party_.shown[static_cast<std::size_t>(rank)];
        RankStatus rank_status{.switching = shown.published()};
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
        std::vector<Result<SwitchResult>> reported(ranks.size(),
                                                   Status::aborted("it has not ended"));
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < ranks.size(); ++i)
            threads.emplace_back([&, i] { reported[i] = follow_as(ranks[i]); });
        for (const Rank rank : ranks)
            while (!lost.empty() && !is_ready(rank)) std::this_thread::yield();
        for (const Rank rank : lost) party_.is_there[static_cast<std::size_t>(rank)] = false;
        for (std::thread& each : threads) each.join();
        return reported;
    }
    [[nodiscard]] bool is_ready(Rank rank) const {
        const Switching shown = party_.shown[static_cast<std::size_t>(rank)].published();
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
            .participate();
    }
    static void expect_all(const std::vector<Result<SwitchResult>>& reported, Outcome outcome) {
        for (const auto& each : reported) {
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

}  // namespace pccl::comm
