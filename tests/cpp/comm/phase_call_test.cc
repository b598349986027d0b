// SPDX-License-Identifier: Apache-2.0

// What a rank makes of a switch that has ended elsewhere, on a group that is already over.
#include "csrc/comm/phase/phase_call.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace pccl::comm {
namespace {

using Stage = Switching::Stage;

/// Rank 2 of three, after rank 1 has left: rank 0 still answers.
class OrphanedGroup final : public PhasedGroup {
   public:
    explicit OrphanedGroup(RankStatus rank0) : rank0_(std::move(rank0)) {}

    [[nodiscard]] Rank rank() const override { return 2; }
    [[nodiscard]] int size() const override { return 3; }
    [[nodiscard]] const std::string& name() const override { return name_; }
    [[nodiscard]] bool share_memory(Rank, Rank) const override { return true; }
    [[nodiscard]] Status check_reverse_route(Rank, bool) const override { return {}; }
    void hold() override {}
    void release() override {}
    [[nodiscard]] Result<bool> drain() override { return health(); }
    [[nodiscard]] std::string under_way() const override { return {}; }
    [[nodiscard]] Switching::GroupProgress progress() const override { return {}; }
    void enter(GroupPhase) override {}
    [[nodiscard]] Result<RankStatus> query(Rank rank, Deadline) const override {
        if (rank == 0) return rank0_;
        return Status::peer_lost(rank, "it has left");
    }
    [[nodiscard]] SwitchState& switching() override { return switching_; }
    [[nodiscard]] Status check_interrupt() const override { return Status::ok(); }
    [[nodiscard]] Status health() const override { return Status::peer_lost(1, "it has left"); }
    void end(const Status&) override {}
    void note_ended_switch(const Status&) override {}

   private:
    const std::string name_ = "world";
    const RankStatus rank0_;
    SwitchState switching_;
};

Result<Switching::SwitchResult> follow(const std::shared_ptr<OrphanedGroup>& group) {
    return PhaseCall({.group = *group,
                      .groups = {group},
                      .proposal = "ring",
                      .deadline = Deadline::after(std::chrono::seconds(5)),
                      .answer_timeout = std::chrono::seconds(5)})
        .participate();
}

TEST(PhaseCall, ALateRankReceivesTheResultAfterOthersHaveLeft) {
    RankStatus rank0;
    rank0.switching = {.number = 1, .stage = Stage::kDone, .proposal = "ring"};
    rank0.switching.switch_result = {.number = 1,
                                     .why = Status::mismatch(1, "rank 1 runs all_reduce")};
    const auto group = std::make_shared<OrphanedGroup>(rank0);
    const auto switch_result = follow(group);
    ASSERT_TRUE(switch_result.is_ok()) << switch_result.status().message();
    EXPECT_EQ(switch_result->why.code(), StatusCode::kMismatch);
    EXPECT_EQ(group->switching().published().stage, Stage::kDone);
}

TEST(PhaseCall, WhereRankZeroHasNotCalledTheOneWhoLeftIsNamed) {
    const auto group = std::make_shared<OrphanedGroup>(RankStatus{});
    const auto switch_result = follow(group);
    EXPECT_EQ(switch_result.status().code(), StatusCode::kPeerLost);
    EXPECT_EQ(switch_result.status().peer(), 1);
    EXPECT_EQ(group->switching().published().stage, Stage::kDone);
}

}  // namespace
}  // namespace pccl::comm
