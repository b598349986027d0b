// SPDX-License-Identifier: Apache-2.0

// What the groups of a process tell one another.

#include "csrc/comm/diagnosis/other_groups.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace pccl::comm {
namespace {

using transport::TransportKind;

class Blocked : public ProbedParticipant, public GroupProbe {
   public:
    explicit Blocked(OtherGroupWait there) : there_(std::move(there)) {}
    [[nodiscard]] OtherGroupWait blocked_in() const override { return there_; }
    [[nodiscard]] const transport::GroupId& group() const override { return there_.group; }
    [[nodiscard]] GroupProbe& group_probe() override { return *this; }
    std::optional<LostMember> look_for_lost(std::uint64_t) override { return std::nullopt; }
    std::optional<LostMember> look_for_holdup(std::uint64_t, Deadline) override {
        return std::nullopt;
    }
    [[nodiscard]] bool can_be_awaited(std::span<const Rank>) const override { return false; }
    [[nodiscard]] bool has_called(std::uint64_t) const override { return true; }
    void end(const Status&) override {}
    void accept_link(const transport::LinkRequest&, std::unique_ptr<transport::RecvLink>) override {
    }
    void accept_region(const transport::LinkRequest&, std::unique_ptr<transport::Region>) override {
    }
    bool progress() override { return false; }
    [[nodiscard]] bool is_busy() const override { return false; }

   private:
    const OtherGroupWait there_;
};

transport::GroupId group(std::uint8_t number) { return {number}; }

class BlockedOutsideTest : public ::testing::Test {
   protected:
    void SetUp() override {
        auto made = runtime::Runtime::create(TransportKind::kTcp);
        ASSERT_TRUE(made.is_ok()) << made.status().to_string();
        runtime_ = *made;
    }
    void register_rank(std::uint8_t number, OtherGroupWait there) {
        there.group = group(number);
        groups_.push_back(std::make_shared<Blocked>(std::move(there)));
        runtime_->register_rank({group(number), 0}, {}, groups_.back());
    }

    std::shared_ptr<runtime::Runtime> runtime_;
    std::vector<std::shared_ptr<Blocked>> groups_;
    const OtherGroupWait idle_{};
    const OtherGroupWait held_{.is_known = false};
    const OtherGroupWait waits_{.operation = "all_reduce #1"};
};

TEST_F(BlockedOutsideTest, NothingIsKnownOfALockedGroup) {
    register_rank(1, idle_);
    EXPECT_TRUE(blocked_outside(*runtime_, group(9)).is_known);
    register_rank(2, held_);
    EXPECT_FALSE(blocked_outside(*runtime_, group(9)).is_known);
    EXPECT_TRUE(blocked_outside(*runtime_, group(2)).is_known);
}

TEST_F(BlockedOutsideTest, AThreadThatWaitsIsFoundBesideOne) {
    register_rank(1, held_);
    register_rank(2, waits_);
    register_rank(3, held_);
    const OtherGroupWait there = blocked_outside(*runtime_, group(9));
    EXPECT_EQ(there.operation, "all_reduce #1");
    EXPECT_EQ(there.group, group(2));
    EXPECT_TRUE(there.is_known);
}

}  // namespace
}  // namespace pccl::comm
