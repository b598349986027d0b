// What a peer that does not keep to the rules may send to the target of over_links.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

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
        auto out = std::make_unique<MemorySendLink>(said_);
        auto in = std::make_unique<MemoryRecvLink>(heard_);
        link_ = rma_.connect({.out = std::move(out), .in = std::move(in)}).value();
    }
    [[nodiscard]] RmaFrame request(RmaFrameKind kind, std::uint64_t number, std::uint64_t offset,
                                   std::uint64_t bytes) const {
        return {.magic = kRmaMagic,
                .kind = kind,
                .outcome = RmaOutcome::kOk,
                .reserved = 0,
                .number = number,
                .id = registration_->descriptor().id,
                .nonce = registration_->descriptor().nonce,
                .offset = offset,
                .bytes = bytes,
                .failed = 0};
    }
    void hear(const RmaFrame& frame, std::size_t payload = 0) {
        const auto bytes = std::as_bytes(std::span(&frame, 1));
        heard_->bytes.insert(heard_->bytes.end(), bytes.begin(), bytes.end());
        heard_->bytes.insert(heard_->bytes.end(), payload, std::byte{0x77});
    }
    /// The next answer of the link; its payload is skipped.
    RmaFrame answer() {
        static_cast<void>(link_->advance());
        RmaFrame frame{};
        EXPECT_GE(said_->bytes.size(), said_->consumed + sizeof frame);
        if (said_->bytes.size() < said_->consumed + sizeof frame) return frame;
        std::memcpy(&frame, said_->bytes.data() + said_->consumed, sizeof frame);
        said_->consumed += sizeof frame + (frame.kind == RmaFrameKind::kData ? frame.bytes : 0);
        return frame;
    }

    std::vector<std::byte> memory_ = std::vector<std::byte>(1000);
    RmaOverLinks rma_;
    std::unique_ptr<Registration> registration_ =
        rma_.add({.data = memory_.data() + 100, .bytes = 800}).value();
    std::shared_ptr<Stream> said_ = std::make_shared<Stream>();
    std::shared_ptr<Stream> heard_ = std::make_shared<Stream>();
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
        hear(request(RmaFrameKind::kWrite, number, offset, bytes), bytes);
        EXPECT_EQ(answer().outcome, RmaOutcome::kOutOfBounds) << offset;
        ++number;
        hear(request(RmaFrameKind::kRead, number, offset, bytes));
        const RmaFrame read = answer();
        EXPECT_EQ(read.kind, RmaFrameKind::kDone) << "no bytes are sent";
        EXPECT_EQ(read.outcome, RmaOutcome::kOutOfBounds) << offset;
        ++number;
    }
    for (const std::uint64_t bytes : {kHuge, kHuge - 7}) {
        hear(request(RmaFrameKind::kRead, number++, 8, bytes));
        EXPECT_EQ(answer().outcome, RmaOutcome::kOutOfBounds);
    }
    EXPECT_TRUE(std::ranges::all_of(memory_, [](std::byte b) { return b == std::byte{0}; }));
    hear(request(RmaFrameKind::kWrite, number, 799, 1), 1);
    EXPECT_EQ(answer().outcome, RmaOutcome::kOk);
    EXPECT_EQ(memory_[899], std::byte{0x77});
    EXPECT_EQ(memory_[900], std::byte{0});
}

TEST_F(StrangePeer, NonceAndIdAreChecked) {
    RmaFrame frame = request(RmaFrameKind::kWrite, 0, 0, 10);
    frame.nonce += 1;
    hear(frame, 10);
    EXPECT_EQ(answer().outcome, RmaOutcome::kEnded);
    frame = request(RmaFrameKind::kWrite, 1, 0, 10);
    frame.id += 1;
    hear(frame, 10);
    EXPECT_EQ(answer().outcome, RmaOutcome::kEnded);
    EXPECT_EQ(memory_[100], std::byte{0});
}

TEST_F(StrangePeer, ARegistrationThatEndsInTheMiddleOfAWriteTakesNoMore) {
    hear(request(RmaFrameKind::kWrite, 0, 0, 300), 100);
    static_cast<void>(link_->advance());
    EXPECT_EQ(memory_[199], std::byte{0x77});
    registration_.reset();
    std::ranges::fill(memory_, std::byte{0});
    heard_->bytes.insert(heard_->bytes.end(), 200, std::byte{0x77});
    EXPECT_EQ(answer().outcome, RmaOutcome::kEnded);
    EXPECT_TRUE(std::ranges::all_of(memory_, [](std::byte b) { return b == std::byte{0}; }));
}

/// Which goes straight to where it belongs while it can.
TEST_F(StrangePeer, ARegistrationThatEndsInTheMiddleOfALongWriteTakesNoMore) {
    std::vector<std::byte> long_memory(1 * kMiB);
    registration_ = rma_.add({.data = long_memory.data(), .bytes = long_memory.size()}).value();
    hear(request(RmaFrameKind::kWrite, 0, 0, long_memory.size()), 300 * kKiB);
    static_cast<void>(link_->advance());
    EXPECT_EQ(std::ranges::count(long_memory, std::byte{0x77}), 300 * kKiB);
    registration_.reset();
    std::ranges::fill(long_memory, std::byte{0});
    heard_->bytes.insert(heard_->bytes.end(), 724 * kKiB, std::byte{0x77});
    registration_ = rma_.add({.data = memory_.data(), .bytes = memory_.size()}).value();
    hear(request(RmaFrameKind::kWrite, 1, 0, 5), 5);
    EXPECT_EQ(answer().outcome, RmaOutcome::kEnded);
    EXPECT_EQ(answer().outcome, RmaOutcome::kOk) << "what comes behind it is taken";
    EXPECT_EQ(std::ranges::count(long_memory, std::byte{0}), 1 * kMiB);
    EXPECT_EQ(std::ranges::count(memory_, std::byte{0x77}), 5);
}

TEST_F(StrangePeer, NonsenseEndsTheLink) {
    std::vector<RmaFrame> wrong;
    for (int i = 0; i < 8; ++i) wrong.push_back(request(RmaFrameKind::kRead, 0, 0, 1));
    wrong[0].magic ^= 1;
    wrong[1].kind = static_cast<RmaFrameKind>(17);
    wrong[2].number = 1;  // the first has number 0
    wrong[3].kind = RmaFrameKind::kDone;
    wrong[4].kind = RmaFrameKind::kData;
    wrong[5].kind = RmaFrameKind::kTaken;
    wrong[6].kind = RmaFrameKind::kWord;
    wrong[6].bytes = 0;
    wrong[7].kind = RmaFrameKind::kWord;
    wrong[7].bytes = RmaLink::kMostNotification + 1;
    for (const RmaFrame& frame : wrong) {
        *heard_ = {};
        SetUp();
        hear(frame);
        EXPECT_EQ(link_->advance().code(), StatusCode::kPeerLost);
        EXPECT_EQ(link_->look().code(), StatusCode::kPeerLost) << "it sticks";
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
                          .in = std::make_unique<MemoryRecvLink>(heard_)})
                .value();
    for (std::uint64_t i = 0; i < 100'000; ++i) hear(request(RmaFrameKind::kRead, i, 0, 1));
    Status status;
    for (int i = 0; i < 1000 && status.is_ok(); ++i) status = link_->advance();
    EXPECT_EQ(status.code(), StatusCode::kPeerLost);
}

TEST_F(StrangePeer, RandomBytesGiveAStatus) {
    std::mt19937 random(3);
    for (int round = 0; round < 2000; ++round) {
        *heard_ = {};
        SetUp();
        for (int i = 0; i < 5; ++i) {
            RmaFrame frame =
                request(static_cast<RmaFrameKind>(random() % 6), i, random() % 900, random() % 100);
            auto* const bytes = reinterpret_cast<unsigned char*>(&frame);
            if (random() % 3 == 0)
                bytes[random() % sizeof frame] = static_cast<unsigned char>(random());
            hear(frame, random() % 100);
        }
        for (int i = 0; i < 3; ++i) static_cast<void>(link_->advance());
        ASSERT_EQ(memory_[99], std::byte{0});
        ASSERT_EQ(memory_[900], std::byte{0});
    }
}

}  // namespace
}  // namespace pccl::transport
