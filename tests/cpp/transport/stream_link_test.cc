// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/stream_link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/rma/frames.h"
#include "csrc/transport/rma/over_links.h"
#include "tests/fakes/memory_links.h"

namespace pccl::transport {
namespace {

using fakes::MemoryRecvLink;
using fakes::MemorySendLink;
using Stream = fakes::MemoryStream;

class StrangePeer : public testing::Test {
   protected:
    void SetUp() override {
        auto out = std::make_unique<MemorySendLink>(sent_);
        auto in = std::make_unique<MemoryRecvLink>(received_);
        link_ = rma_.connect({.out = std::move(out), .in = std::move(in)}).value();
    }
    [[nodiscard]] RmaFrame request(RmaFrameKind kind, std::uint64_t number, std::uint64_t offset,
                                   std::uint64_t bytes) const {
        return request_frame(kind, number, RmaExtent{.offset = offset, .bytes = bytes});
    }
    [[nodiscard]] RmaFrame request_frame(RmaFrameKind kind, std::uint64_t number,
                                         RmaBlocks blocks) const {
        const abi::MemoryDescriptor& memory = registration_->descriptor();
        return request_of(kind, number,
                          {.registration = {memory.id, memory.nonce}, .blocks = std::move(blocks)});
    }
    void receive(const RmaFrame& frame, const std::vector<RmaExtent>& list, std::size_t payload) {
        receive(frame);
        const auto bytes = std::as_bytes(std::span(list));
        received_->bytes.insert(received_->bytes.end(), bytes.begin(), bytes.end());
        received_->bytes.insert(received_->bytes.end(), payload, std::byte{0x77});
    }
    void receive(const RmaFrame& frame, std::size_t payload = 0) {
        const auto bytes = std::as_bytes(std::span(&frame, 1));
        received_->bytes.insert(received_->bytes.end(), bytes.begin(), bytes.end());
        received_->bytes.insert(received_->bytes.end(), payload, std::byte{0x77});
    }
    /// The next answer of the link; its payload is skipped.
    RmaFrame answer() {
        static_cast<void>(link_->advance());
        RmaFrame frame{};
        EXPECT_GE(sent_->bytes.size(), sent_->consumed + sizeof frame);
        if (sent_->bytes.size() < sent_->consumed + sizeof frame) return frame;
        std::memcpy(&frame, sent_->bytes.data() + sent_->consumed, sizeof frame);
        sent_->consumed += sizeof frame + (frame.kind == RmaFrameKind::kData ? frame.bytes : 0);
        return frame;
    }

    std::vector<std::byte> memory_ = std::vector<std::byte>(1000);
    RmaOverLinks rma_;
    std::unique_ptr<Registration> registration_ =
        rma_.add({.data = memory_.data() + 100, .bytes = 800}).value();
    std::shared_ptr<Stream> sent_ = std::make_shared<Stream>();
    std::shared_ptr<Stream> received_ = std::make_shared<Stream>();
    std::unique_ptr<RmaLink> link_;
};

TEST_F(StrangePeer, BoundsAreCheckedByTheTarget) {
    constexpr std::uint64_t kHuge = ~std::uint64_t{0};
    std::uint64_t number = 0;
    for (const auto& [offset, bytes] :
         std::vector<std::pair<std::uint64_t, std::uint64_t>>{{801, 0},
                                                              {800, 1},
                                                              {0, 801},
                                                              {799, 2},
                                                              {kHuge, 1},
                                                              {kHuge, 2},
                                                              {(1ULL << 32) + 1, 1}}) {
        receive(request(RmaFrameKind::kWrite, number, offset, bytes), bytes);
        EXPECT_EQ(answer().outcome, RmaOutcome::kOutOfBounds) << offset;
        ++number;
        receive(request(RmaFrameKind::kRead, number, offset, bytes));
        const RmaFrame read = answer();
        EXPECT_EQ(read.kind, RmaFrameKind::kDone) << "no bytes are sent";
        EXPECT_EQ(read.outcome, RmaOutcome::kOutOfBounds) << offset;
        ++number;
    }
    for (const std::uint64_t bytes : {kHuge, kHuge - 7}) {
        receive(request(RmaFrameKind::kRead, number++, 8, bytes));
        EXPECT_EQ(answer().outcome, RmaOutcome::kOutOfBounds);
    }
    EXPECT_TRUE(std::ranges::all_of(memory_, [](std::byte b) { return b == std::byte{0}; }));
    receive(request(RmaFrameKind::kWrite, number, 799, 1), 1);
    EXPECT_EQ(answer().outcome, RmaOutcome::kOk);
    EXPECT_EQ(memory_[899], std::byte{0x77});
    EXPECT_EQ(memory_[900], std::byte{0});
}

TEST_F(StrangePeer, BoundsOfRunsAndListsAreCheckedByTheTarget) {
    constexpr std::uint64_t kHuge = ~std::uint64_t{0};
    std::vector<RmaBlocks> wrong{
        RmaBlocks({0, 8}, 99, 10),         // the last one is 891 to 899
        RmaBlocks({8, 8}, 1ULL << 62, 4),  // as is 4 times the stride
        RmaBlocks({8, 8}, 1ULL << 63, 3),  // which comes back to where it began
        RmaBlocks({8, 8}, kHuge, 2),       // one below that
        RmaBlocks({kHuge - 7, 8}, 8, 2),   // the second one begins at 0
        RmaBlocks({801, 1}, 0, 2),
        RmaBlocks(std::vector<RmaExtent>{{0, 8}, {793, 8}}),
        RmaBlocks(std::vector<RmaExtent>{{kHuge - 3, 8}, {0, 8}}),
        RmaBlocks(std::vector<RmaExtent>{{0, 8}, {kHuge, 1}, {0, 8}}),
    };
    std::uint64_t number = 0;
    for (const RmaBlocks& blocks : wrong) {
        const std::vector<RmaExtent> list(blocks.list().begin(), blocks.list().end());
        receive(request_frame(RmaFrameKind::kWrite, number++, blocks), list, blocks.bytes());
        EXPECT_EQ(answer().outcome, RmaOutcome::kOutOfBounds) << number;
        receive(request_frame(RmaFrameKind::kRead, number++, blocks), list, 0);
        const RmaFrame read = answer();
        EXPECT_EQ(read.kind, RmaFrameKind::kDone) << "no bytes are sent";
        EXPECT_EQ(read.outcome, RmaOutcome::kOutOfBounds) << number;
    }
    EXPECT_EQ(rma_.refusals(), number);
    EXPECT_TRUE(std::ranges::all_of(memory_, [](std::byte b) { return b == std::byte{0}; }));
    receive(request_frame(RmaFrameKind::kWrite, number, RmaBlocks({0, 8}, 99, 9)), 72);
    EXPECT_EQ(answer().outcome, RmaOutcome::kOk);
    EXPECT_EQ(std::ranges::count(memory_, std::byte{0x77}), 72);
    EXPECT_EQ(memory_[100 + 8 * 99 + 7], std::byte{0x77});
}

/// Bytes that come one by one stand in for those that come in any pieces.
TEST_F(StrangePeer, AListThatComesByteByByteIsUnderstood) {
    const std::vector<RmaExtent> list{{700, 2}, {3, 1}, {10, 4}};
    receive(request_frame(RmaFrameKind::kWrite, 0, RmaBlocks(list)), list, 7);
    const std::vector<std::byte> all = std::exchange(received_->bytes, {});
    for (const std::byte each : all) {
        received_->bytes.push_back(each);
        ASSERT_TRUE(link_->advance().is_ok());
    }
    EXPECT_EQ(answer().outcome, RmaOutcome::kOk);
    EXPECT_EQ(std::ranges::count(memory_, std::byte{0x77}), 7);
    for (const std::size_t at : {800, 801, 103, 110, 113})
        EXPECT_EQ(memory_[at], std::byte{0x77}) << at;
}

TEST_F(StrangePeer, ARegistrationThatEndsInTheMiddleOfARunTakesNoMore) {
    receive(request_frame(RmaFrameKind::kWrite, 0, RmaBlocks({0, 10}, 20, 30)), 100);
    static_cast<void>(link_->advance());
    EXPECT_EQ(std::ranges::count(memory_, std::byte{0x77}), 100);
    registration_.reset();
    std::ranges::fill(memory_, std::byte{0});
    received_->bytes.insert(received_->bytes.end(), 200, std::byte{0x77});
    EXPECT_EQ(answer().outcome, RmaOutcome::kEnded);
    EXPECT_TRUE(std::ranges::all_of(memory_, [](std::byte b) { return b == std::byte{0}; }));
}

TEST_F(StrangePeer, NonceAndIdAreChecked) {
    RmaFrame frame = request(RmaFrameKind::kWrite, 0, 0, 10);
    frame.nonce += 1;
    receive(frame, 10);
    EXPECT_EQ(answer().outcome, RmaOutcome::kEnded);
    frame = request(RmaFrameKind::kWrite, 1, 0, 10);
    frame.id += 1;
    receive(frame, 10);
    EXPECT_EQ(answer().outcome, RmaOutcome::kEnded);
    EXPECT_EQ(memory_[100], std::byte{0});
}

TEST_F(StrangePeer, ARegistrationThatEndsInTheMiddleOfAWriteTakesNoMore) {
    receive(request(RmaFrameKind::kWrite, 0, 0, 300), 100);
    static_cast<void>(link_->advance());
    EXPECT_EQ(memory_[199], std::byte{0x77});
    registration_.reset();
    std::ranges::fill(memory_, std::byte{0});
    received_->bytes.insert(received_->bytes.end(), 200, std::byte{0x77});
    EXPECT_EQ(answer().outcome, RmaOutcome::kEnded);
    EXPECT_TRUE(std::ranges::all_of(memory_, [](std::byte b) { return b == std::byte{0}; }));
}

/// Which goes straight to where it belongs while it can.
TEST_F(StrangePeer, ARegistrationThatEndsInTheMiddleOfALongWriteTakesNoMore) {
    std::vector<std::byte> long_memory(1 * kMiB);
    registration_ = rma_.add({.data = long_memory.data(), .bytes = long_memory.size()}).value();
    receive(request(RmaFrameKind::kWrite, 0, 0, long_memory.size()), 300 * kKiB);
    static_cast<void>(link_->advance());
    EXPECT_EQ(std::ranges::count(long_memory, std::byte{0x77}), 300 * kKiB);
    registration_.reset();
    std::ranges::fill(long_memory, std::byte{0});
    received_->bytes.insert(received_->bytes.end(), 724 * kKiB, std::byte{0x77});
    registration_ = rma_.add({.data = memory_.data(), .bytes = memory_.size()}).value();
    receive(request(RmaFrameKind::kWrite, 1, 0, 5), 5);
    EXPECT_EQ(answer().outcome, RmaOutcome::kEnded);
    EXPECT_EQ(answer().outcome, RmaOutcome::kOk) << "what comes behind it is taken";
    EXPECT_EQ(std::ranges::count(long_memory, std::byte{0}), 1 * kMiB);
    EXPECT_EQ(std::ranges::count(memory_, std::byte{0x77}), 5);
}

TEST_F(StrangePeer, AProtocolErrorEndsTheLink) {
    std::vector<RmaFrame> wrong;
    for (int i = 0; i < 16; ++i) wrong.push_back(request(RmaFrameKind::kRead, 0, 0, 1));
    wrong[0].magic ^= 1;
    wrong[1].kind = static_cast<RmaFrameKind>(17);
    wrong[2].number = 1;  // the first has number 0
    wrong[3].kind = RmaFrameKind::kDone;
    wrong[4].kind = RmaFrameKind::kData;
    wrong[5].kind = RmaFrameKind::kTaken;
    wrong[6].kind = RmaFrameKind::kNotification;
    wrong[6].bytes = 0;
    wrong[7].kind = RmaFrameKind::kNotification;
    wrong[7].bytes = RmaLink::kMostNotification + 1;
    wrong[8].count = 0;
    wrong[9].count = 2;  // of 1 byte
    wrong[10].count = 2;
    wrong[10].bytes = 0;
    for (int i = 11; i < 15; ++i) wrong[i].layout = RmaLayout::kList;  // zeros follow
    wrong[11].count = 1;
    wrong[12].count = RmaBlocks::kMostListed + 1;
    wrong[13].count = 2;  // of no bytes
    wrong[14].layout = static_cast<RmaLayout>(2);
    wrong[15].count = wrong[15].bytes = kRmaTogether + 1;  // blocks of 1 byte, all the same
    for (const RmaFrame& frame : wrong) {
        *received_ = {};
        SetUp();
        receive(frame);
        received_->bytes.resize(received_->bytes.size() +
                                RmaBlocks::kMostListed * sizeof(RmaExtent));
        EXPECT_EQ(link_->advance().code(), StatusCode::kPeerLost);
        EXPECT_EQ(link_->look().code(), StatusCode::kPeerLost) << "it sticks";
    }
}

TEST_F(StrangePeer, AListOfOtherBytesThanItsRequestEndsTheLink) {
    for (const std::uint64_t last : {3U, 5U}) {
        *received_ = {};
        SetUp();
        const std::vector<RmaExtent> list{{0, 4}, {8, 4}};
        receive(request_frame(RmaFrameKind::kRead, 0, RmaBlocks(list)), {{0, 4}, {8, last}}, 0);
        EXPECT_EQ(link_->advance().code(), StatusCode::kPeerLost) << last;
    }
}

TEST_F(StrangePeer, MoreRequestsThanAllowedEndTheLink) {
    // Streams that take nothing: answers pile up.
    struct Full final : SendLink {
        [[nodiscard]] TransportKind kind() const override { return TransportKind::kTcp; }
        [[nodiscard]] std::size_t capacity(ChannelId) const override { return 0; }
        Result<std::size_t> send(ChannelId, Bytes, Flush) override { return std::size_t{0}; }
        Result<bool> flush(ChannelId) override { return false; }
        void abort(const Status&) override {}
    };
    link_ = rma_.connect({.out = std::make_unique<Full>(),
                          .in = std::make_unique<MemoryRecvLink>(received_)})
                .value();
    for (std::uint64_t i = 0; i < 100'000; ++i) receive(request(RmaFrameKind::kRead, i, 0, 1));
    Status status;
    for (int i = 0; i < 1000 && status.is_ok(); ++i) status = link_->advance();
    EXPECT_EQ(status.code(), StatusCode::kPeerLost);
}

TEST_F(StrangePeer, RandomBytesGiveAStatus) {
    std::mt19937 random(3);
    for (int round = 0; round < 2000; ++round) {
        *received_ = {};
        SetUp();
        for (int i = 0; i < 5; ++i) {
            RmaFrame frame =
                request(static_cast<RmaFrameKind>(random() % 6), i, random() % 900, random() % 100);
            auto* const bytes = reinterpret_cast<unsigned char*>(&frame);
            if (random() % 3 == 0)
                bytes[random() % sizeof frame] = static_cast<unsigned char>(random());
            receive(frame, random() % 100);
        }
        for (int i = 0; i < 3; ++i) static_cast<void>(link_->advance());
        ASSERT_EQ(memory_[99], std::byte{0});
        ASSERT_EQ(memory_[900], std::byte{0});
    }
}

}  // namespace
}  // namespace pccl::transport
