// SPDX-License-Identifier: Apache-2.0

// Which stream of a bundle carries what. What all links promise is tested by the contract suite.
#include "csrc/transport/rma/bundle.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "csrc/transport/rma/over_links.h"
#include "tests/fakes/memory_links.h"

namespace pccl::transport {
namespace {

using fakes::MemoryRecvLink;
using fakes::MemorySendLink;
using Stream = fakes::MemoryStream;

constexpr std::size_t kLanes = 3;

/// Incoming stream that counts the calls that look for bytes.
class CountedRecvLink final : public RecvLink {
   public:
    CountedRecvLink(std::shared_ptr<Stream> stream, int& looks)
        : link_(std::move(stream)), looks_(looks) {}
    [[nodiscard]] TransportKind kind() const override { return link_.kind(); }
    Result<Bytes> peek(ChannelId channel) override {
        ++looks_;
        return link_.peek(channel);
    }
    void consume(ChannelId channel, std::size_t count) override { link_.consume(channel, count); }
    Result<std::size_t> receive(ChannelId channel, MutableBytes into) override {
        ++looks_;
        return link_.receive(channel, into);
    }
    void abort(const Status& reason) override { link_.abort(reason); }

   private:
    MemoryRecvLink link_;
    int& looks_;
};

/// Both ends of a bundle, over streams in memory: the main one, and then lanes.
class BundleTest : public testing::Test {
   protected:
    BundleTest() {
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            initiator_->add_lane(lane, streams(requests_.at(lane + 1), answers_.at(lane + 1)));
            target_->add_lane(lane, streams(answers_.at(lane + 1), requests_.at(lane + 1)));
        }
        looks_ = 0;
    }
    RmaStreams streams(const std::shared_ptr<Stream>& out, const std::shared_ptr<Stream>& in) {
        return {.out = std::make_unique<MemorySendLink>(out),
                .in = std::make_unique<CountedRecvLink>(in, looks_)};
    }
    static std::array<std::shared_ptr<Stream>, kLanes + 1> make_streams() {
        std::array<std::shared_ptr<Stream>, kLanes + 1> made;
        for (auto& each : made) each = std::make_shared<Stream>();
        return made;
    }
    Status complete(RmaOp op, std::uint64_t bytes) {
        const RmaPiece piece{
            .local = mine_.get(), .remote = &theirs_->descriptor(), .bytes = bytes};
        EXPECT_EQ(initiator_->post(op, {&piece, 1}, 1).value(), 1U);
        return await();
    }
    Status await() {
        std::array<RmaCompletion, 4> completed;
        for (int round = 0; round < 1000; ++round) {
            EXPECT_TRUE(target_->advance().is_ok());
            const auto count = initiator_->poll(completed);
            PCCL_TRY(count.status());
            if (*count > 0) return completed.front().status;
        }
        return Status::timeout("nothing is complete");
    }
    [[nodiscard]] std::array<std::size_t, kLanes + 1> bytes_requested() const {
        std::array<std::size_t, kLanes + 1> bytes{};
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes.at(i) = requests_.at(i)->bytes.size();
        return bytes;
    }

    static constexpr std::size_t kBytes = 3 * RmaBundle::kLarge;
    int looks_ = 0;
    std::array<std::shared_ptr<Stream>, kLanes + 1> requests_ = make_streams();
    std::array<std::shared_ptr<Stream>, kLanes + 1> answers_ = make_streams();
    RmaOverLinks here_;
    RmaOverLinks there_;
    std::vector<std::byte> here_bytes_ = std::vector<std::byte>(kBytes);
    std::vector<std::byte> there_bytes_ = std::vector<std::byte>(kBytes);
    std::unique_ptr<Registration> mine_ =
        here_.add({.data = here_bytes_.data(), .bytes = kBytes}).value();
    std::unique_ptr<Registration> theirs_ =
        there_.add({.data = there_bytes_.data(), .bytes = kBytes}).value();
    std::unique_ptr<RmaBundle> initiator_ =
        here_.connect_bundle(streams(requests_[0], answers_[0]), {});
    std::unique_ptr<RmaBundle> target_ =
        there_.connect_bundle(streams(answers_[0], requests_[0]), {});
};

TEST_F(BundleTest, SmallPostsGoOverTheMainStreamAlone) {
    const auto before = bytes_requested();
    for (int i = 0; i < 10; ++i) ASSERT_EQ(complete(RmaOp::kWrite, 4096).to_string(), "ok");
    const auto after = bytes_requested();
    EXPECT_GT(after[0], before[0] + 40'960);
    for (std::size_t lane = 1; lane <= kLanes; ++lane) EXPECT_EQ(after.at(lane), before.at(lane));
}

TEST_F(BundleTest, LargePostsGoOverAllLanesAlike) {
    ASSERT_EQ(complete(RmaOp::kWrite, kBytes).to_string(), "ok");
    const auto bytes = bytes_requested();
    EXPECT_LT(bytes[0], 1000U) << "announcements";
    for (std::size_t lane = 1; lane <= kLanes; ++lane)
        EXPECT_NEAR(static_cast<double>(bytes.at(lane)), static_cast<double>(kBytes) / kLanes,
                    2048);
}

TEST_F(BundleTest, SmallPostsInARowAreLargeTogether) {
    constexpr std::uint64_t kBlock = 512 * kKiB;
    const RmaPiece piece{.local = mine_.get(), .remote = &theirs_->descriptor(), .bytes = kBlock};
    constexpr std::size_t kPosts = 2 * RmaBundle::kLarge / kBlock;
    for (std::uint64_t ticket = 0; ticket < kPosts; ++ticket)
        ASSERT_EQ(initiator_->post(RmaOp::kWrite, {&piece, 1}, ticket).value(), 1U);
    ASSERT_EQ(await().to_string(), "ok");
    const auto bytes = bytes_requested();
    for (const std::size_t each : bytes) EXPECT_GE(each, kBlock);
}

TEST_F(BundleTest, NoCallLooksForBytesOnIdleLanes) {
    ASSERT_EQ(complete(RmaOp::kRead, kBytes).to_string(), "ok");
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(target_->advance().is_ok());
    looks_ = 0;
    ASSERT_TRUE(target_->advance().is_ok());
    EXPECT_EQ(looks_, 1) << "at the main stream";
    std::array<RmaCompletion, 1> none;
    ASSERT_EQ(initiator_->poll(none).value(), 0U);
    EXPECT_EQ(looks_, 2);
}

TEST_F(BundleTest, AnotherPostOfALaneIsFoundByItsAnnouncement) {
    for (int i = 0; i < 5; ++i) {
        ASSERT_EQ(complete(RmaOp::kRead, kBytes).to_string(), "ok");
        ASSERT_EQ(complete(RmaOp::kRead, 8).to_string(), "ok");
    }
}

TEST_F(BundleTest, APeerThatAnnouncesTheImpossibleIsLost) {
    for (const std::uint64_t lane : {std::uint64_t{kMostRmaLanes}, ~std::uint64_t{0}}) {
        const auto out = std::make_shared<Stream>();
        const auto in = std::make_shared<Stream>();
        const auto end = here_.connect_bundle(streams(out, in), {});
        RmaFrame head = frame_of(RmaFrameKind::kOnLane, 1);
        head.count = lane;
        const auto bytes = std::as_bytes(std::span(&head, 1));
        in->bytes.insert(in->bytes.end(), bytes.begin(), bytes.end());
        EXPECT_EQ(end->advance().code(), StatusCode::kPeerLost) << lane;
    }
    const auto in = std::make_shared<Stream>();
    const auto end = here_.connect_bundle(streams(std::make_shared<Stream>(), in), {});
    for (const std::uint64_t requests : {5, 4}) {
        const RmaFrame head = frame_of(RmaFrameKind::kOnLane, requests);
        const auto bytes = std::as_bytes(std::span(&head, 1));
        in->bytes.insert(in->bytes.end(), bytes.begin(), bytes.end());
        EXPECT_EQ(end->advance().is_ok(), requests == 5) << "it had announced more";
    }
}

}  // namespace
}  // namespace pccl::transport
