// SPDX-License-Identifier: Apache-2.0

// Notifications that immediates of RDMA announce: they do not wait for completions, keep their
// order, and are delivered once whatever fails.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "tests/cpp/transport/verbs_links.h"

namespace pccl::transport::verbs {
namespace {

/// Rule for requests of one-sided access: streams write with immediate alone, and never without
/// bytes.
fake_verbs_rule of_access(fake_verbs_effect effect, ibv_wr_opcode opcode) {
    fake_verbs_rule rule{};
    rule.effect = effect;
    rule.opcode = opcode + 1;
    rule.empty = opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? 1 : 0;
    rule.status = IBV_WC_RETRY_EXC_ERR;
    rule.count = 1;
    return rule;
}

/// Notifications of one end, and memory that it writes at the other.
class AnnouncingPair {
   public:
    static constexpr std::size_t kBytes = 64 * kKiB;

    explicit AnnouncingPair(const VerbsOptions& options) : pair(options) {
        // The first access opens the queue pairs.
        EXPECT_TRUE(pair.complete(RmaOp::kWrite, piece(0, 1)).is_ok());
    }
    [[nodiscard]] RmaPiece piece(std::size_t at, std::size_t bytes) const {
        return {.local = local.registration.get(),
                .at = at,
                .remote = &remote.registration->descriptor(),
                .there = at,
                .bytes = bytes};
    }
    /// Posts a write of a number to the place of that index.
    void write(std::size_t index, std::uint64_t value) {
        std::memcpy(local.bytes.data() + 8 * index, &value, sizeof value);
        const RmaPiece one = piece(8 * index, 8);
        pair.post(RmaOp::kWrite, {&one, 1});
    }
    [[nodiscard]] std::uint64_t written(std::size_t index) const {
        std::uint64_t value = 0;
        std::memcpy(&value, remote.bytes.data() + 8 * index, sizeof value);
        return value;
    }
    void notify(const std::string& text) {
        until([&] {
            const auto taken = pair.link->notify(std::as_bytes(std::span(text)));
            EXPECT_TRUE(taken.is_ok()) << taken.status().to_string();
            if (taken.is_ok() && !*taken) pair.poll();
            return !taken.is_ok() || *taken;
        });
    }
    /// Returns the next notification if it is there.
    std::optional<std::string> look() {
        const auto next = pair.peer->next_notification();
        EXPECT_TRUE(next.is_ok()) << next.status().to_string();
        if (!next.is_ok() || !*next) return std::nullopt;
        return std::string(reinterpret_cast<const char*>((*next)->data()), (*next)->size());
    }
    std::string await() {
        std::optional<std::string> next;
        until([&] {
            pair.poll();
            next = look();
            return next.has_value() || !pair.failure.is_ok();
        });
        return next.value_or(pair.failure.to_string());
    }
    /// Makes progress until all notifications have left, and returns what is left of them.
    std::vector<std::string> rest() {
        until([&] {
            pair.poll();
            return pair.posts == 0 && pair.link->is_flushed();
        });
        std::vector<std::string> rest;
        // The last one may need a look at its frame, one at its immediate, and an answer.
        for (int i = 0; i < 100; ++i) {
            pair.poll();
            if (auto next = look()) rest.push_back(*std::move(next));
        }
        return rest;
    }

    VerbsRmaPair pair;
    VerbsMemoryOf local{*pair.here, kBytes};
    VerbsMemoryOf remote{*pair.there, kBytes};
};

using Texts = std::vector<std::string>;

class VerbsNotificationsTest : public testing::Test {
   protected:
    AnnouncingPair ends_{one_port()};
};

TEST_F(VerbsNotificationsTest, ANotificationDoesNotWaitForTheCompletion) {
    fakes::FakeVerbsRule held(of_access(FAKE_VERBS_HOLD_ANSWER, IBV_WR_RDMA_WRITE_WITH_IMM));
    ends_.write(1, 11);
    ends_.notify("written");
    EXPECT_EQ(ends_.await(), "written");
    EXPECT_EQ(ends_.written(1), 11U);
    EXPECT_EQ(ends_.pair.posts, 1U) << "the initiator has no completion";
    EXPECT_FALSE(ends_.pair.link->is_flushed()) << "the immediate may be lost";
    held.end();
    EXPECT_TRUE(ends_.pair.wait().is_ok());
    EXPECT_EQ(ends_.rest(), Texts());
}

TEST_F(VerbsNotificationsTest, ANotificationWaitsForItsBytes) {
    fakes::FakeVerbsRule held(of_access(FAKE_VERBS_STALL, IBV_WR_RDMA_WRITE));
    ends_.write(1, 11);
    ends_.notify("written");
    for (int i = 0; i < 100; ++i) {
        ends_.pair.poll();
        ASSERT_EQ(ends_.look(), std::nullopt);
    }
    held.end();
    EXPECT_EQ(ends_.await(), "written");
    EXPECT_EQ(ends_.written(1), 11U);
}

TEST_F(VerbsNotificationsTest, AnArrivingImmediateWakesTheTarget) {
    fakes::FakeVerbsRule held(of_access(FAKE_VERBS_STALL, IBV_WR_RDMA_WRITE));
    ends_.write(1, 11);
    ends_.notify("written");
    for (int i = 0; i < 100; ++i) {
        ends_.pair.poll();
        ASSERT_EQ(ends_.look(), std::nullopt);
    }
    constexpr Duration kForGood = std::chrono::seconds(20);
    constexpr Duration kCalm = std::chrono::milliseconds(20);
    Waiter& waiter = ends_.pair.target.waiter();
    for (bool is_calm = false; !is_calm;) {
        const Deadline deadline = Deadline::after(kCalm);
        waiter.sleep(waiter.prepare(), kCalm);
        is_calm = deadline.passed();
    }
    const std::uint32_t ticket = waiter.prepare();
    ASSERT_EQ(ends_.look(), std::nullopt);
    held.end();
    const Deadline deadline = Deadline::after(kForGood);
    waiter.sleep(ticket, kForGood);
    EXPECT_FALSE(deadline.passed()) << "nothing ended the sleep";
    EXPECT_EQ(ends_.look(), "written");
}

TEST_F(VerbsNotificationsTest, NotificationsThatTheTargetDoesNotTakeNeedNoMoreReceives) {
    fakes::reset_fake_counters();
    constexpr std::size_t kMany = 300;
    for (std::size_t i = 0; i < kMany; ++i) {
        ends_.write(i, i + 1);
        ends_.notify(std::to_string(i));
        ASSERT_EQ(ends_.pair.wait().to_string(), "ok");
    }
    for (std::size_t i = 0; i < kMany; ++i) {
        ASSERT_EQ(ends_.await(), std::to_string(i));
        EXPECT_EQ(ends_.written(i), i + 1);
    }
    EXPECT_EQ(fakes::fake_counters().not_ready, 0U);
    EXPECT_EQ(ends_.rest(), Texts());
}

TEST_F(VerbsNotificationsTest, AThousandNotificationsBetweenWritesAndReadsKeepTheirOrder) {
    fakes::reset_fake_counters();
    constexpr std::size_t kMany = 1'000;
    std::size_t seen = 0;
    const auto take = [&](const std::string& text) {
        ASSERT_EQ(text, std::to_string(seen));
        EXPECT_EQ(ends_.written(seen), seen + 1) << "its bytes come first";
        ++seen;
    };
    for (std::size_t i = 0; i < kMany && !HasFailure(); ++i) {
        ends_.write(i, i + 1);
        const RmaPiece read{.local = ends_.local.registration.get(),
                            .at = AnnouncingPair::kBytes - 8,
                            .remote = &ends_.remote.registration->descriptor(),
                            .there = 0,
                            .bytes = 8};
        if (i % 7 == 3) ends_.pair.post(RmaOp::kRead, {&read, 1});
        ends_.notify(std::to_string(i));
        if (i % 3 == 0) ends_.pair.poll();
        while (i % 5 == 0) {
            const auto next = ends_.look();
            if (!next) break;
            take(*next);
        }
    }
    while (seen < kMany && !HasFailure()) take(ends_.await());
    EXPECT_EQ(ends_.pair.wait().to_string(), "ok");
    EXPECT_EQ(ends_.rest(), Texts());
    EXPECT_EQ(fakes::fake_counters().not_ready, 0U);
}

/// A memory at the target that it deregisters.
class VerbsDeregisteredTest : public VerbsNotificationsTest {
   protected:
    void write_gone() {
        const abi::MemoryDescriptor gone = gone_->registration->descriptor();
        RmaPiece piece = ends_.piece(0, 8);
        piece.remote = &gone;
        ends_.pair.post(RmaOp::kWrite, {&piece, 1});
        gone_->registration.reset();
    }

    std::unique_ptr<VerbsMemoryOf> gone_ = std::make_unique<VerbsMemoryOf>(*ends_.pair.there, 64);
};

TEST_F(VerbsDeregisteredTest, ANotificationBehindAFailedWriteIsDropped) {
    ends_.write(1, 11);
    ends_.notify("before");
    // The bytes of the post are moved by the next call.
    write_gone();
    ends_.write(2, 12);
    ends_.notify("behind");
    EXPECT_EQ(ends_.pair.wait().code(), StatusCode::kUnavailable);
    until([&] {
        ends_.pair.poll();
        return ends_.pair.posts == 0;
    });
    ends_.write(3, 13);
    ends_.notify("afterwards");
    EXPECT_EQ(ends_.await(), "before");
    EXPECT_EQ(ends_.await(), "afterwards");
    EXPECT_EQ(ends_.written(2), 12U) << "the other post is complete";
    EXPECT_EQ(ends_.written(3), 13U);
    EXPECT_EQ(ends_.rest(), Texts());
}

TEST_F(VerbsDeregisteredTest, AnAnnouncementThatIsReadAfterTheEndOfItsQueuePairIsConfirmed) {
    ends_.write(1, 11);
    ends_.notify("early");
    until([&] {
        ends_.pair.poll();
        return ends_.pair.posts == 0 && ends_.pair.link->is_flushed();
    });
    write_gone();
    EXPECT_EQ(ends_.pair.wait().code(), StatusCode::kUnavailable);
    ends_.write(2, 12);
    EXPECT_EQ(ends_.pair.wait().to_string(), "ok") << "on a new queue pair";
    EXPECT_EQ(ends_.await(), "early");
    EXPECT_EQ(ends_.rest(), Texts());
}

/// Two ports, the first of which fails.
class VerbsNotificationFailoverTest : public testing::Test {
   protected:
    /// Moves a queue pair's last requests.
    void carry_on() {
        until([&] {
            ends_.pair.poll();
            return ends_.pair.posts == 0 && ends_.pair.link->is_flushed();
        });
    }
    void expect_works() {
        for (std::size_t i = 100; i < 110; ++i) {
            ends_.write(i, i);
            ends_.notify(std::to_string(i));
            EXPECT_EQ(ends_.await(), std::to_string(i));
            EXPECT_EQ(ends_.written(i), i);
        }
        EXPECT_EQ(ends_.rest(), Texts());
    }

    AnnouncingPair ends_{VerbsOptions{.hca = "=mlx5_0,mlx5_1:1"}};
};

TEST_F(VerbsNotificationFailoverTest, AWriteWhoseNotificationCameIsNotRepeated) {
    const fakes::FakeVerbsRule rule(of_access(FAKE_VERBS_LOSE_ANSWERS, IBV_WR_RDMA_WRITE));
    ends_.write(1, 11);
    ends_.notify("written");
    std::optional<std::string> seen = ends_.look();
    ASSERT_EQ(seen, "written") << "without progress of the initiator";
    ASSERT_EQ(ends_.written(1), 11U);
    // The target's program owns its memory now.
    std::ranges::fill(ends_.remote.bytes, std::byte{0x55});
    fakes::reset_fake_counters();
    carry_on();
    EXPECT_EQ(ends_.pair.failure.to_string(), "ok");
    EXPECT_EQ(fakes::fake_counters().requests[IBV_WR_RDMA_WRITE], 0U);
    EXPECT_TRUE(std::ranges::all_of(ends_.remote.bytes,
                                    [](std::byte each) { return each == std::byte{0x55}; }));
    EXPECT_EQ(ends_.rest(), Texts());
    expect_works();
}

TEST_F(VerbsNotificationFailoverTest, OnlyWritesBehindTheLastImmediateAreRepeated) {
    fakes::FakeVerbsRule held(of_access(FAKE_VERBS_STALL, IBV_WR_RDMA_WRITE));
    fake_verbs_rule lost = of_access(FAKE_VERBS_LOSE_ANSWERS, IBV_WR_RDMA_WRITE);
    lost.operations = 3;
    std::strcpy(lost.device, "mlx5_0");
    const fakes::FakeVerbsRule rule(lost);
    // The first queue pair has two writes and an immediate, then one for a write of the second
    // queue pair, then a write and an immediate that do not arrive.
    ends_.write(0, 10);
    ends_.write(2, 11);
    ends_.notify("first");
    const RmaPiece large = ends_.piece(8'000, 8'000);
    ends_.pair.post(RmaOp::kWrite, {&large, 1});
    ends_.notify("large");
    ends_.write(4, 12);
    ends_.notify("second");
    ASSERT_EQ(ends_.look(), std::nullopt);
    fakes::reset_fake_counters();
    held.end();
    ASSERT_EQ(ends_.look(), "first");
    ASSERT_EQ(ends_.look(), "large");
    ASSERT_EQ(ends_.look(), std::nullopt);
    EXPECT_EQ(ends_.written(4), 0U);
    std::ranges::fill(std::span(ends_.remote.bytes).first(24), std::byte{0x55});
    EXPECT_EQ(ends_.await(), "second");
    EXPECT_EQ(ends_.written(0), 0x5555'5555'5555'5555U);
    EXPECT_EQ(ends_.written(2), 0x5555'5555'5555'5555U);
    EXPECT_EQ(ends_.written(4), 12U);
    EXPECT_EQ(ends_.pair.wait().to_string(), "ok");
    EXPECT_EQ(fakes::fake_counters().requests[IBV_WR_RDMA_WRITE], 1U);
    expect_works();
}

TEST_F(VerbsNotificationFailoverTest, ALostWriteIsRepeatedBeforeItsNotification) {
    const fakes::FakeVerbsRule rule(of_access(FAKE_VERBS_FAIL, IBV_WR_RDMA_WRITE));
    ends_.write(1, 11);
    ends_.notify("written");
    ends_.write(2, 12);
    ends_.notify("next");
    EXPECT_EQ(ends_.look(), std::nullopt);
    EXPECT_EQ(ends_.await(), "written");
    EXPECT_EQ(ends_.written(1), 11U);
    EXPECT_EQ(ends_.await(), "next");
    EXPECT_EQ(ends_.written(2), 12U);
    EXPECT_EQ(ends_.rest(), Texts());
    expect_works();
}

TEST_F(VerbsNotificationFailoverTest, AWriteIsRepeatedOnceThePeerHasEndedTheQueuePair) {
    const std::uint64_t pairs = fakes::fake_counters().qps;
    const fakes::FakeVerbsRule rule(of_access(FAKE_VERBS_FAIL, IBV_WR_RDMA_WRITE));
    ends_.write(1, 11);
    for (int i = 0; i < 10; ++i) {
        std::array<RmaCompletion, 1> completed;
        ASSERT_EQ(ends_.pair.link->poll(completed).value(), 0U) << "without progress of the peer";
    }
    EXPECT_EQ(ends_.written(1), 0U);
    EXPECT_EQ(ends_.pair.wait().to_string(), "ok");
    EXPECT_EQ(ends_.written(1), 11U);
    EXPECT_EQ(fakes::fake_counters().qps, pairs - 2) << "those of both ends";
    expect_works();
}

TEST_F(VerbsNotificationFailoverTest, ALostImmediateIsReplacedByAMessage) {
    const fakes::FakeVerbsRule rule(of_access(FAKE_VERBS_FAIL, IBV_WR_RDMA_WRITE_WITH_IMM));
    fakes::reset_fake_counters();
    ends_.write(1, 11);
    ends_.notify("written");
    EXPECT_EQ(ends_.look(), std::nullopt);
    EXPECT_EQ(ends_.await(), "written");
    EXPECT_EQ(fakes::fake_counters().requests[IBV_WR_RDMA_WRITE], 1U);
    EXPECT_EQ(ends_.rest(), Texts());
    expect_works();
}

TEST(VerbsNotificationsOfPairsTest, AnImmediateFollowsTheWritesOfEachQueuePair) {
    AnnouncingPair ends(VerbsOptions{.hca = "=mlx5_0,mlx5_1:1", .queue_pairs = 2});
    // One lane is behind the others.
    for (std::uint64_t round = 0; round < 20; ++round) {
        fake_verbs_rule rule = of_access(FAKE_VERBS_DELAY, IBV_WR_RDMA_WRITE);
        rule.skip = round * 7;
        rule.operations = 3;
        const fakes::FakeVerbsRule delayed(rule);
        std::vector<RmaPiece> pieces;
        const std::vector<std::byte> bytes = numbered(AnnouncingPair::kBytes, round);
        std::ranges::copy(bytes, ends.local.bytes.begin());
        for (std::size_t i = 0; i < 150; ++i) pieces.push_back(ends.piece(400 * i, 300));
        ends.pair.post(RmaOp::kWrite, pieces);
        ends.notify(std::to_string(round));
        ASSERT_EQ(ends.await(), std::to_string(round));
        for (const RmaPiece& each : pieces)
            ASSERT_EQ(std::memcmp(ends.remote.bytes.data() + each.there, bytes.data() + each.at,
                                  each.bytes),
                      0);
        ASSERT_EQ(ends.pair.wait().to_string(), "ok");
    }
}

}  // namespace
}  // namespace pccl::transport::verbs
