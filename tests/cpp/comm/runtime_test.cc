// What a runtime tells of all the groups of its process.

#include "csrc/comm/runtime.h"

#include <gtest/gtest.h>

#include <memory>

namespace pccl::comm {
namespace {

using transport::TransportKind;

class Blocked : public Participant {
   public:
    explicit Blocked(Elsewhere there) : there_(std::move(there)) {}
    [[nodiscard]] Elsewhere blocked_in() const override { return there_; }
    void accept_link(const transport::LinkRequest&, std::unique_ptr<transport::RecvLink>) override {
    }
    void accept_region(const transport::LinkRequest&, std::unique_ptr<transport::Region>) override {
    }
    bool advance() override { return false; }
    [[nodiscard]] bool is_busy() const override { return false; }

   private:
    const Elsewhere there_;
};

transport::GroupId group(std::uint8_t number) { return {number}; }

class BlockedOutsideTest : public testing::Test {
   protected:
    void SetUp() override {
        auto made = Runtime::create(TransportKind::kTcp);
        ASSERT_TRUE(made.is_ok()) << made.status().to_string();
        runtime_ = *made;
    }
    void enroll(std::uint8_t number, const std::shared_ptr<Blocked>& participant) {
        runtime_->enroll({group(number), 0}, {}, participant);
    }

    std::shared_ptr<Runtime> runtime_;
    const std::shared_ptr<Blocked> idle_ = std::make_shared<Blocked>(Elsewhere{});
    const std::shared_ptr<Blocked> held_ = std::make_shared<Blocked>(Elsewhere{.is_known = false});
    const std::shared_ptr<Blocked> waits_ =
        std::make_shared<Blocked>(Elsewhere{.operation = "all_reduce #1"});
};

TEST_F(BlockedOutsideTest, NothingIsKnownOfAGroupThatSomebodyHolds) {
    enroll(1, idle_);
    EXPECT_TRUE(runtime_->blocked_outside(group(9)).is_known);
    enroll(2, held_);
    EXPECT_FALSE(runtime_->blocked_outside(group(9)).is_known);
    EXPECT_TRUE(runtime_->blocked_outside(group(2)).is_known);
}

TEST_F(BlockedOutsideTest, AThreadThatWaitsIsFoundBesideOne) {
    enroll(1, held_);
    enroll(2, waits_);
    enroll(3, held_);
    const Elsewhere there = runtime_->blocked_outside(group(9));
    EXPECT_EQ(there.operation, "all_reduce #1");
    EXPECT_EQ(there.group, group(2));
    EXPECT_TRUE(there.is_known);
}

}  // namespace
}  // namespace pccl::comm
