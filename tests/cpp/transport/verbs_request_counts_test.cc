// SPDX-License-Identifier: Apache-2.0

// Requests, doorbells and completions of RDMA operations, which the fake libibverbs counts.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <array>
#include <iostream>
#include <vector>

#include "tests/cpp/transport/verbs_links.h"

namespace pccl::transport::verbs {
namespace {

/// Runs `body`, and returns what it did; prints it.
fake_verbs_counters counts_of(const char* what, const std::function<void()>& body) {
    fakes::reset_fake_counters();
    body();
    const fake_verbs_counters counts = fakes::fake_counters();
    std::cout << what << ": " << counts.requests[IBV_WR_RDMA_WRITE] << " writes, "
              << counts.requests[IBV_WR_RDMA_WRITE_WITH_IMM] << " with immediate, "
              << counts.requests[IBV_WR_RDMA_READ] << " reads, " << counts.inline_requests
              << " inline, " << counts.doorbells << " doorbells, " << counts.signalled
              << " signalled completions, " << counts.receive_completions
              << " receive completions, " << counts.not_ready << " times no receive\n";
    return counts;
}

class VerbsStreamCountsTest : public testing::Test {
   protected:
    static constexpr std::uint64_t kMessages = 512;

    fake_verbs_counters exchange(const char* what, std::size_t bytes) {
        const std::vector<std::byte> message = numbered(bytes);
        static_cast<void>(pair_.exchange(message));
        return counts_of(what, [&] {
            for (std::uint64_t i = 0; i < kMessages; ++i)
                ASSERT_EQ(pair_.exchange(message), message);
        });
    }

    VerbsStreamPair pair_;
};

TEST_F(VerbsStreamCountsTest, AMessageOf64KiBIsOneWriteWithImmediate) {
    const auto counts = exchange("512 messages of 64 KiB", 64 * kKiB);
    EXPECT_LE(counts.requests[IBV_WR_RDMA_WRITE_WITH_IMM], kMessages + kMessages / 8)
        << "the data, and an eighth of that for credit";
    EXPECT_EQ(counts.requests[IBV_WR_RDMA_WRITE], 0U);
    EXPECT_LE(counts.doorbells, kMessages + kMessages / 8);
    EXPECT_EQ(counts.not_ready, 0U);
}

TEST_F(VerbsStreamCountsTest, AShortMessageIsOneInlineWrite) {
    const auto counts = exchange("512 messages of 100 bytes", 100);
    EXPECT_LE(counts.requests[IBV_WR_RDMA_WRITE_WITH_IMM], kMessages + kMessages / 8);
    EXPECT_EQ(counts.requests[IBV_WR_RDMA_WRITE], 0U);
    EXPECT_GE(counts.inline_requests, kMessages);
    EXPECT_LE(counts.signalled, kMessages / 16);
    EXPECT_EQ(counts.not_ready, 0U);
}

TEST_F(VerbsStreamCountsTest, MessagesOfHalfARingFindReceives) {
    // The sender finds room each time, and has no reason to wait: credit arrives all the same.
    const auto counts = exchange("512 messages of 512 KiB", 512 * kKiB);
    EXPECT_EQ(counts.not_ready, 0U);
}

TEST(VerbsStreamCountsOfPortsTest, SeveralPortsShareAMessage) {
    VerbsStreamPair pair({.hca = "=mlx5_0,mlx5_1", .queue_pairs = 2});
    const std::vector<std::byte> message = numbered(256 * kKiB);
    const auto counts = counts_of("64 messages of 256 KiB over 4 queue pairs", [&] {
        for (int i = 0; i < 64; ++i) ASSERT_EQ(pair.exchange(message), message);
    });
    EXPECT_LE(counts.requests[IBV_WR_RDMA_WRITE_WITH_IMM], 64U * 4 + 64U * 4 / 8);
    EXPECT_EQ(counts.not_ready, 0U);
}

class VerbsRmaCountsTest : public testing::Test {
   protected:
    static constexpr std::size_t kBytes = 10'000 * std::size_t{64};

    void SetUp() override {
        // The first access opens the queue pairs.
        ASSERT_TRUE(pair_.complete(RmaOp::kWrite, piece(0, 1)).is_ok());
    }
    [[nodiscard]] RmaPiece piece(std::size_t at, std::size_t bytes) const {
        return {.local = local_.registration.get(),
                .at = at,
                .remote = &remote_.registration->descriptor(),
                .there = at,
                .bytes = bytes};
    }
    [[nodiscard]] std::vector<RmaPiece> blocks(std::size_t count, std::size_t bytes) const {
        std::vector<RmaPiece> list;
        for (std::size_t i = 0; i < count; ++i) list.push_back(piece(i * 64, bytes));
        return list;
    }

    VerbsRmaPair pair_;
    VerbsMemoryOf local_{*pair_.here, kBytes};
    VerbsMemoryOf remote_{*pair_.there, kBytes};
};

TEST_F(VerbsRmaCountsTest, AWriteOf8BytesIsOneInlineRequest) {
    const auto counts = counts_of("a write of 8 bytes", [&] {
        ASSERT_TRUE(pair_.complete(RmaOp::kWrite, piece(8, 8)).is_ok());
    });
    EXPECT_EQ(counts.requests[IBV_WR_RDMA_WRITE], 1U);
    EXPECT_EQ(counts.inline_requests, 1U);
    EXPECT_EQ(counts.requests[IBV_WR_RDMA_WRITE_WITH_IMM], 0U);
    EXPECT_EQ(counts.doorbells, 1U);
    EXPECT_EQ(counts.signalled, 1U);
}

TEST_F(VerbsRmaCountsTest, ANotificationOfAWriteIsOneMoreRequestAndAMessage) {
    const std::array<std::byte, 64> notification{};
    const auto counts = counts_of("a write of 8 bytes with a notification", [&] {
        const RmaPiece one = piece(8, 8);
        pair_.post(RmaOp::kWrite, {&one, 1});
        ASSERT_TRUE(pair_.link->notify(notification).value());
        until([&] {
            pair_.poll();
            return pair_.peer->next_notification().value().has_value();
        });
        ASSERT_TRUE(pair_.wait().is_ok());
    });
    EXPECT_EQ(counts.requests[IBV_WR_RDMA_WRITE], 1U);
    EXPECT_EQ(counts.requests[IBV_WR_RDMA_WRITE_WITH_IMM], 2U)
        << "one behind the write, one of the stream";
    EXPECT_EQ(counts.doorbells, 2U);
    EXPECT_EQ(counts.signalled, 1U);
    EXPECT_EQ(counts.inline_requests, 2U);
    EXPECT_EQ(counts.receive_completions, 2U);
}

TEST_F(VerbsRmaCountsTest, NotificationsNeedAMessageOfCreditFor16) {
    constexpr std::uint64_t kMany = 160;
    const std::array<std::byte, 64> notification{};
    const auto counts = counts_of("160 writes of 8 bytes with notifications", [&] {
        for (std::uint64_t i = 0; i < kMany; ++i) {
            const RmaPiece one = piece(8, 8);
            pair_.post(RmaOp::kWrite, {&one, 1});
            ASSERT_TRUE(pair_.link->notify(notification).value());
            until([&] {
                pair_.poll();
                return pair_.peer->next_notification().value().has_value();
            });
            ASSERT_TRUE(pair_.wait().is_ok());
        }
    });
    // The streams' own credit is a write for 8 messages.
    EXPECT_LE(counts.requests[IBV_WR_RDMA_WRITE_WITH_IMM], kMany * 2 + kMany / 16 + kMany / 4);
    EXPECT_EQ(counts.requests[IBV_WR_RDMA_WRITE], kMany);
    EXPECT_EQ(counts.not_ready, 0U);
}

TEST_F(VerbsRmaCountsTest, AReadIsOneRequest) {
    const auto counts = counts_of("a read of 8 bytes", [&] {
        ASSERT_TRUE(pair_.complete(RmaOp::kRead, piece(8, 8)).is_ok());
    });
    EXPECT_EQ(counts.requests[IBV_WR_RDMA_READ], 1U);
    EXPECT_EQ(counts.doorbells, 1U);
    EXPECT_EQ(counts.signalled, 1U);
}

TEST_F(VerbsRmaCountsTest, SixteenWritesOfOnePostHaveOneCompletion) {
    const auto counts = counts_of("a post of 16 writes of 8 bytes", [&] {
        pair_.post(RmaOp::kWrite, blocks(16, 8));
        ASSERT_TRUE(pair_.wait().is_ok());
    });
    EXPECT_EQ(counts.requests[IBV_WR_RDMA_WRITE], 16U);
    EXPECT_EQ(counts.doorbells, 1U);
    EXPECT_EQ(counts.signalled, 1U);
}

TEST_F(VerbsRmaCountsTest, SixteenPostsBeforeAPollHaveOneCompletion) {
    const auto counts = counts_of("16 posts of a write of 8 bytes", [&] {
        for (const RmaPiece& each : blocks(16, 8)) pair_.post(RmaOp::kWrite, {&each, 1});
        ASSERT_TRUE(pair_.wait().is_ok());
    });
    EXPECT_EQ(counts.requests[IBV_WR_RDMA_WRITE], 16U);
    EXPECT_LE(counts.signalled, 1U);
}

TEST_F(VerbsRmaCountsTest, AListOf10000BlocksHasADoorbellAndACompletionFor32) {
    constexpr std::uint64_t kMost = (10'000 + 31) / 32;
    for (const RmaOp op : {RmaOp::kWrite, RmaOp::kRead}) {
        const auto list = blocks(10'000, 32);
        const auto counts =
            counts_of(op == RmaOp::kWrite ? "10,000 blocks written" : "10,000 blocks read", [&] {
                pair_.post(op, list);
                ASSERT_TRUE(pair_.wait().is_ok());
            });
        EXPECT_EQ(counts.requests[IBV_WR_RDMA_WRITE] + counts.requests[IBV_WR_RDMA_READ], 10'000U);
        EXPECT_LE(counts.doorbells, kMost);
        EXPECT_LE(counts.signalled, kMost);
    }
}

}  // namespace
}  // namespace pccl::transport::verbs
