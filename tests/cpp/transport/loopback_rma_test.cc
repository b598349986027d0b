// SPDX-License-Identifier: Apache-2.0

// Faults of one-sided access in a loopback fabric: each makes a completion fail, none gives wrong
// bytes for good.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "csrc/transport/rma.h"
#include "tests/cpp/transport/group_identity.h"
#include "tests/fakes/connect.h"
#include "tests/fakes/host.h"
#include "tests/fakes/loopback/loopback_fabric.h"
#include "tests/fakes/loopback/manual_clock.h"

namespace pccl::transport::loopback {
namespace {

constexpr std::size_t kWindowBytes = 1000;
constexpr std::byte kOld{0x11};
constexpr std::byte kHere{0x22};

struct RmaHost final : fakes::Host {
    explicit RmaHost(LoopbackFabric& fabric)
        : fakes::Host([&fabric](Waiter& own) { return fakes::loopback_member(fabric, own); }) {
        static_cast<LoopbackControlPlane&>(control()).answer_inline(*this);
    }
    std::optional<Secret> secret_of(const GroupId&) override { return kSecret; }
    void accepted(const LinkRequest&, std::unique_ptr<RecvLink> in) override {
        streams.in = std::move(in);
    }
    void refused(std::string_view, const Status& why) override { FAIL() << why.to_string(); }

    RmaStreams streams;
    std::shared_ptr<RmaTransport> rma = transport().one_sided().value();
    std::unique_ptr<RmaLink> link;
};

/// An initiator, 0, and a target, 1, on one thread.
class RmaWorld {
   public:
    explicit RmaWorld(const FabricOptions& options) : fabric_(LoopbackFabric::create(options)) {
        for (int i = 0; i < 2; ++i) hosts_.push_back(std::make_unique<RmaHost>(*fabric_));
        for (Rank rank = 0; rank < 2; ++rank) {
            const LinkRequest request{.group = kGroup, .source = rank, .destination = 1 - rank};
            host(rank).streams.out =
                fakes::connect(host(rank).transport(), host(1 - rank).address(), request, kSecret,
                               Deadline::after(std::chrono::seconds(30)))
                    .value();
        }
        for (Rank rank = 0; rank < 2; ++rank)
            host(rank).link = host(rank).rma->connect(std::move(host(rank).streams)).value();
        mine_ = host(0).rma->add({.data = here.data(), .bytes = kWindowBytes}).value();
        theirs_ = host(1).rma->add({.data = there.data(), .bytes = kWindowBytes}).value();
        descriptor_ = theirs_->descriptor();
    }
    RmaHost& host(Rank rank) { return *hosts_[static_cast<std::size_t>(rank)]; }
    LoopbackFabric& fabric() { return *fabric_; }
    void post(RmaOp op) {
        const RmaPiece piece{.local = mine_.get(), .remote = &descriptor_, .bytes = kWindowBytes};
        EXPECT_EQ(host(0).link->post(op, {&piece, 1}, 1).value(), 1U);
    }
    /// Nothing while the post is not complete.
    std::optional<Status> poll() {
        RmaCompletion completed;
        const auto count = host(0).link->poll({&completed, 1});
        if (!count.is_ok()) return count.status();
        return *count == 1 ? std::optional(completed.status) : std::nullopt;
    }

    std::vector<std::byte> here = std::vector<std::byte>(kWindowBytes, kHere);
    std::vector<std::byte> there = std::vector<std::byte>(kWindowBytes, kOld);

   private:
    std::shared_ptr<LoopbackFabric> fabric_;
    std::vector<std::unique_ptr<RmaHost>> hosts_;
    std::unique_ptr<Registration> mine_;
    std::unique_ptr<Registration> theirs_;
    abi::MemoryDescriptor descriptor_{};
};

std::ptrdiff_t count(const std::vector<std::byte>& bytes, std::byte value) {
    return std::ranges::count(bytes, value);
}

TEST(LoopbackRmaTest, ACopyThatIsCutMovesSomeBytesAndEndsTheLink) {
    for (const RmaOp op : {RmaOp::kRead, RmaOp::kWrite}) {
        RmaWorld world({.faults = {.cut = 1}});
        world.post(op);
        const auto completed = world.poll();
        ASSERT_TRUE(completed);
        EXPECT_EQ(completed->code(), StatusCode::kPeerLost);
        EXPECT_EQ(completed->peer(), 1);
        const auto& moved = op == RmaOp::kRead ? world.here : world.there;
        EXPECT_EQ(count(moved, kOld), kWindowBytes / 2);
        EXPECT_EQ(count(moved, kHere), kWindowBytes / 2);
        EXPECT_EQ(world.poll()->code(), StatusCode::kPeerLost);
        EXPECT_EQ(world.host(1).link->next_notification().status().code(), StatusCode::kPeerLost);
    }
}

TEST(LoopbackRmaTest, APeerThatGivesUpInTheMiddleOverwritesItsMemory) {
    for (const RmaOp op : {RmaOp::kRead, RmaOp::kWrite}) {
        RmaWorld world({.faults = {.give_up = 1}});
        world.post(op);
        const auto completed = world.poll();
        ASSERT_TRUE(completed);
        EXPECT_EQ(completed->code(), StatusCode::kUnavailable) << completed->to_string();
        EXPECT_EQ(count(world.there, kOld) + count(world.there, kHere), 0) << "it is the owner's";
        EXPECT_EQ(world.poll(), std::nullopt) << "the link goes on";
    }
}

TEST(LoopbackRmaTest, ALinkThatBreaksMovesNothing) {
    RmaWorld world({.faults = {.reset = 1}});
    world.post(RmaOp::kWrite);
    EXPECT_EQ(world.poll()->code(), StatusCode::kPeerLost);
    EXPECT_EQ(count(world.there, kOld), static_cast<std::ptrdiff_t>(kWindowBytes));
}

TEST(LoopbackRmaTest, ADelayHoldsBytesAndNotificationsBack) {
    const ManualClock clock;
    RmaWorld world(
        {.faults = {.seed = 9, .longest_delay = std::chrono::seconds(1)}, .clock = &clock});
    world.post(RmaOp::kWrite);
    ASSERT_TRUE(world.host(0).link->notify(std::as_bytes(std::span("done"))).value());
    EXPECT_EQ(world.poll(), std::nullopt);
    EXPECT_EQ(count(world.there, kOld), static_cast<std::ptrdiff_t>(kWindowBytes));
    EXPECT_EQ(world.host(1).link->next_notification().value(), std::nullopt);
    clock.sleep_for(std::chrono::seconds(1));
    EXPECT_TRUE(world.poll()->is_ok());
    EXPECT_EQ(count(world.there, kHere), static_cast<std::ptrdiff_t>(kWindowBytes));
    clock.sleep_for(std::chrono::seconds(1));
    EXPECT_TRUE(world.host(1).link->next_notification().value().has_value());
}

TEST(LoopbackRmaTest, AProcessThatDiesIsLostAndWhatItWantedIsAborted) {
    RmaWorld world({});
    world.post(RmaOp::kRead);
    world.fabric().kill(1);
    EXPECT_EQ(world.poll()->code(), StatusCode::kPeerLost);
    EXPECT_EQ(count(world.here, kHere), static_cast<std::ptrdiff_t>(kWindowBytes));

    RmaWorld doomed({});
    doomed.post(RmaOp::kRead);
    doomed.fabric().kill(0);
    EXPECT_EQ(doomed.poll()->code(), StatusCode::kAborted);
}

TEST(LoopbackRmaTest, FaultsBySeedNeverGiveWrongBytesForGood) {
    int good = 0;
    int failed = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        RmaWorld world({.faults = {.seed = seed, .reset = 0.1, .cut = 0.2, .give_up = 0.2}});
        world.post(RmaOp::kRead);
        const auto completed = world.poll();
        ASSERT_TRUE(completed);
        if (completed->is_ok()) {
            ++good;
            ASSERT_EQ(count(world.here, kOld), static_cast<std::ptrdiff_t>(kWindowBytes)) << seed;
        } else {
            ++failed;
        }
    }
    EXPECT_GT(good, 50);
    EXPECT_GT(failed, 50);
}

}  // namespace
}  // namespace pccl::transport::loopback
