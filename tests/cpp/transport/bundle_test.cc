// SPDX-License-Identifier: Apache-2.0

// Which stream of a bundle carries what. What all links promise is tested by the contract suite.
#include "csrc/transport/rma/bundle.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/transport/rma/over_links.h"
#include "tests/fakes/memory_links.h"

namespace pccl::transport {
namespace {

using fakes::MemoryRecvLink;
using fakes::MemorySendLink;
using Stream = fakes::MemoryStream;

constexpr std::size_t kLanes = 3;

/// Incoming stream that counts the calls that look for bytes, and ends with `fault` once it is an
/// error.
class CountedRecvLink final : public RecvLink {
   public:
    CountedRecvLink(std::shared_ptr<Stream> stream, int& looks, const Status& fault)
        : link_(std::move(stream)), looks_(looks), fault_(fault) {}
    [[nodiscard]] TransportKind kind() const override { return link_.kind(); }
    Result<Bytes> peek(ChannelId channel) override {
        ++looks_;
        PCCL_TRY(fault_);
        return link_.peek(channel);
    }
    void consume(ChannelId channel, std::size_t count) override { link_.consume(channel, count); }
    Result<std::size_t> receive(ChannelId channel, MutableBytes into) override {
        ++looks_;
        PCCL_TRY(fault_);
        return link_.receive(channel, into);
    }
    void abort(const Status& reason) override { link_.abort(reason); }

   private:
    MemoryRecvLink link_;
    int& looks_;
    const Status& fault_;
};

/// Both ends of a bundle, over streams in memory: the main one, and then lanes.
class BundleTest : public testing::Test {
   protected:
    BundleTest() {
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            initiator_->add_lane(lane, initiator_streams(lane + 1));
            target_->add_lane(lane, streams(answers_.at(lane + 1), requests_.at(lane + 1)));
        }
        looks_ = 0;
    }
    RmaStreams streams(const std::shared_ptr<Stream>& out, const std::shared_ptr<Stream>& in) {
        return streams(out, in, no_fault_);
    }
    RmaStreams streams(const std::shared_ptr<Stream>& out, const std::shared_ptr<Stream>& in,
                       const Status& fault) {
        return {.out = std::make_unique<MemorySendLink>(out),
                .in = std::make_unique<CountedRecvLink>(in, looks_, fault)};
    }
    /// Streams of the initiator: the main ones are number 0.
    RmaStreams initiator_streams(std::size_t number) {
        return streams(requests_.at(number), answers_.at(number), faults_.at(number));
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

    /// Posts a write of so many bytes, which fails unless the target knows its memory.
    void post_write(std::uint64_t bytes, std::uint64_t ticket, bool is_known = true) {
        const RmaPiece piece{.local = mine_.get(),
                             .remote = is_known ? &theirs_->descriptor() : &unknown_,
                             .bytes = bytes};
        EXPECT_EQ(initiator_->post(RmaOp::kWrite, {&piece, 1}, ticket).value(), 1U);
    }
    void notify(std::string_view text) {
        EXPECT_TRUE(initiator_->notify(std::as_bytes(std::span(text))).value());
    }
    /// Makes progress until so many writes are over, and then everything is flushed; returns the
    /// notifications that have come.
    std::vector<std::string> notified_after(std::size_t writes) {
        std::vector<std::string> texts;
        std::array<RmaCompletion, 4> completed;
        for (int round = 0; round < 1000 && (writes > 0 || !initiator_->is_flushed()); ++round) {
            EXPECT_TRUE(target_->advance().is_ok());
            writes -= initiator_->poll(completed).value();
        }
        while (const auto next = target_->next_notification().value())
            texts.emplace_back(reinterpret_cast<const char*>(next->data()), next->size());
        return texts;
    }
    /// Posts some reads, ends an incoming stream of the initiator, and returns how these reads end.
    std::vector<Status> ends_of_reads_without(std::size_t stream) {
        constexpr std::uint64_t kReads = 3;
        const RmaPiece piece{
            .local = mine_.get(), .remote = &theirs_->descriptor(), .bytes = kBytes};
        for (std::uint64_t ticket = 0; ticket < kReads; ++ticket)
            EXPECT_EQ(initiator_->post(RmaOp::kRead, {&piece, 1}, ticket).value(), 1U);
        EXPECT_TRUE(initiator_->advance().is_ok());
        faults_.at(stream) = Status::peer_lost(kNoRank, "it has gone");
        std::vector<Status> ends;
        const Deadline deadline = Deadline::after(std::chrono::seconds(20));
        while (ends.size() < kReads && !deadline.passed()) {
            std::array<RmaCompletion, kReads> completed;
            const auto count = initiator_->poll(completed);
            if (!count.is_ok()) break;
            for (std::size_t i = 0; i < *count; ++i) ends.push_back(completed.at(i).status);
        }
        EXPECT_EQ(ends.size(), kReads);
        return ends;
    }

    static constexpr std::size_t kBytes = 3 * RmaBundle::kLarge;
    const Status no_fault_;
    std::array<Status, kLanes + 1> faults_;  // of the initiator's incoming streams
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
    const abi::MemoryDescriptor unknown_ = [this] {
        abi::MemoryDescriptor descriptor = theirs_->descriptor();
        ++descriptor.nonce;
        return descriptor;
    }();
    std::unique_ptr<RmaBundle> initiator_ = here_.connect_bundle(initiator_streams(0), {});
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

TEST_F(BundleTest, AnAnnouncementThatComesWithALookForNotificationsHasMovedTheLink) {
    const RmaPiece piece{.local = mine_.get(), .remote = &theirs_->descriptor(), .bytes = kBytes};
    std::array<RmaCompletion, 1> none;
    ASSERT_EQ(target_->poll(none).value(), 0U);
    ASSERT_FALSE(target_->has_moved());
    ASSERT_EQ(initiator_->post(RmaOp::kRead, {&piece, 1}, 1).value(), 1U);
    ASSERT_TRUE(initiator_->advance().is_ok());
    ASSERT_EQ(target_->next_notification().value(), std::nullopt);
    EXPECT_TRUE(target_->has_moved()) << "its caller may sleep otherwise";
}

TEST_F(BundleTest, AWriteThatFailsBehindANotificationDoesNotDropIt) {
    post_write(kBytes, 1);
    notify("behind it");
    post_write(8, 2, false);
    EXPECT_EQ(notified_after(2), std::vector<std::string>{"behind it"});
}

TEST_F(BundleTest, AWriteThatFailsBeforeANotificationDropsItUntilItIsKnown) {
    post_write(8, 1, false);
    post_write(kBytes, 2);
    notify("behind both");
    EXPECT_EQ(notified_after(2), std::vector<std::string>());
    post_write(kBytes, 3);
    notify("knows of it");
    EXPECT_EQ(notified_after(1), std::vector<std::string>{"knows of it"});
}

TEST_F(BundleTest, TheEndOfTheMainStreamEndsAllPosts) {
    for (const Status& end : ends_of_reads_without(0)) EXPECT_EQ(end.message(), "it has gone");
}

TEST_F(BundleTest, TheEndOfALaneEndsAllPosts) {
    for (const Status& end : ends_of_reads_without(2)) EXPECT_EQ(end.message(), "it has gone");
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
