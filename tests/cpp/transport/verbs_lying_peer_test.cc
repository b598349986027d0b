// SPDX-License-Identifier: Apache-2.0

// A peer that writes values into the pages of a link, or sends immediates, which no correct peer
// would: the link ends at once with an error that names the peer and the value.
#include <endian.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/transport/verbs/port_choice.h"
#include "csrc/transport/verbs/rma_responders.h"
#include "tests/cpp/transport/verbs_links.h"
#include "tests/fakes/verbs_ends.h"

namespace pccl::transport::verbs {
namespace {

using testing::HasSubstr;

constexpr std::size_t kRing = fakes::VerbsEnds::kRing;

class VerbsLyingPeerTest : public testing::Test {
   protected:
    static std::string message_of_lost_rank(const Status& error) {
        EXPECT_EQ(error.code(), StatusCode::kPeerLost);
        EXPECT_EQ(error.peer(), 1);
        return std::string(error.message());
    }

    const std::unique_ptr<Waiter> waiter_ = Waiter::create().value();
    const std::vector<std::shared_ptr<Port>> ports_ =
        choose_ports({.filter = HcaFilter::parse("=mlx5_0").value()}, *waiter_).value();
};

TEST_F(VerbsLyingPeerTest, PartnersThatAreMissingOrNamedTwiceAreRefused) {
    const auto taken = [&](std::uint8_t first, std::uint8_t second) {
        Lanes lanes = Lanes::create(ports_, 2, {}).value();
        std::vector<LaneEnd> peer = Lanes::create(ports_, 2, {}).value().ends();
        peer[0].partner = first;
        peer[1].partner = second;
        return lanes.take_partners(peer);
    };
    EXPECT_TRUE(taken(1, 0).is_ok());
    EXPECT_THAT(std::string(taken(0, 2).message()), HasSubstr("connects queue pair 2 of 2"));
    EXPECT_THAT(std::string(taken(1, 1).message()), HasSubstr("connects queue pair 1 of 2 twice"));
}

class VerbsLyingReceiverTest : public VerbsLyingPeerTest {
   protected:
    /// Makes the link under test, with `pairs` queue pairs.
    void link_of(int pairs) {
        alone_ = std::make_unique<fakes::VerbsSenderAlone>(ports_, pairs, *waiter_, helper_);
    }
    std::size_t send(std::size_t bytes) {
        const std::vector<std::byte> some(bytes);
        const auto sent = alone_->link->send(kCollectiveChannel, some, Flush::kNow);
        EXPECT_TRUE(sent.is_ok()) << sent.status().to_string();
        return sent.is_ok() ? *sent : 0;
    }
    /// Returns the message of the link's error, which goes on sending.
    std::string error() {
        const std::vector<std::byte> some(kRing);
        Status error;
        until([&] {
            error = alone_->link->send(kCollectiveChannel, some, Flush::kNow).status();
            return !error.is_ok();
        });
        return message_of_lost_rank(error);
    }

    const std::shared_ptr<Poller> helper_ = std::make_shared<Poller>(
        PollerOptions{.name = "helper", .interval = std::chrono::milliseconds(1)});
    std::unique_ptr<fakes::VerbsSenderAlone> alone_;
};

TEST_F(VerbsLyingReceiverTest, MoreBytesConsumedThanWereSentEndTheLink) {
    for (const int pairs : {1, 2}) {
        link_of(pairs);
        ASSERT_EQ(send(100), 100U);
        alone_->credits().consumed[kCollectiveChannel] = 101;
        EXPECT_THAT(error(), HasSubstr("wrote an impossible credit: 101; expected 0 to 100"));
    }
}

TEST_F(VerbsLyingReceiverTest, FewerBytesConsumedThanBeforeEndALinkOfOneQueuePair) {
    link_of(1);
    ASSERT_EQ(send(100), 100U);
    alone_->credits().consumed[kCollectiveChannel] = 100;
    ASSERT_EQ(send(kRing), kRing) << "the credit is used";
    alone_->credits().consumed[kCollectiveChannel] = 99;
    EXPECT_THAT(error(), HasSubstr("wrote an impossible credit: 99; expected 100 to 65636"));
}

TEST_F(VerbsLyingReceiverTest, OfSeveralQueuePairsAnEarlierCreditMayComeLateAndTakesNothingBack) {
    link_of(2);
    ASSERT_EQ(send(100), 100U);
    alone_->credits().consumed[kCollectiveChannel] = 100;
    ASSERT_EQ(send(kRing), kRing);
    alone_->credits().consumed[kCollectiveChannel] = 99;
    EXPECT_EQ(send(1), 0U) << "the ring is full";
    alone_->credits().consumed[kCollectiveChannel] = 101;
    EXPECT_EQ(send(2), 1U);
}

TEST_F(VerbsLyingReceiverTest, MoreReceiveRequestsThanWereUsedEndTheLink) {
    for (const int pairs : {1, 2}) {
        link_of(pairs);
        ASSERT_EQ(send(1), 1U);
        alone_->credits().receives[0] = 2;
        EXPECT_THAT(error(), HasSubstr("wrote an impossible credit: 2; expected 0 to 1"));
    }
}

TEST_F(VerbsLyingReceiverTest, FewerReceiveRequestsThanBeforeEndALinkOfOneQueuePair) {
    link_of(1);
    ASSERT_EQ(send(1) + send(1), 2U);
    alone_->credits().receives[0] = 2;
    ASSERT_EQ(send(1), 1U) << "the credit is read";
    alone_->credits().receives[0] = 1;
    EXPECT_THAT(error(), HasSubstr("wrote an impossible credit: 1; expected 2 to 3"));
}

TEST_F(VerbsLyingReceiverTest, AnImmediateThatStandsForNothingEndsTheLink) {
    for (const std::uint32_t immediate : {0U, kTailImmediate, kLaneDown + 1, 0xffffffffU}) {
        link_of(1);
        alone_->write_immediate(htobe32(immediate), 0);
        EXPECT_THAT(error(), HasSubstr(concat("the immediate ", immediate)));
    }
}

TEST_F(VerbsLyingReceiverTest, AnAnswerThatWasNotRequestedEndsTheLink) {
    link_of(2);
    const std::string answer = FailoverAnswer{.sequence = 1, .has_arrived = {}}.serialise();
    std::memcpy(alone_->page + kMailbox, answer.data(), answer.size());
    alone_->write_immediate(htobe32(kMessageImmediate), 0);
    EXPECT_THAT(error(), HasSubstr("an answer that was not requested"));
}

class VerbsLyingSenderTest : public VerbsLyingPeerTest {
   protected:
    std::string error() {
        Status error;
        until([&] {
            error = alone_.link->peek(kCollectiveChannel).status();
            return !error.is_ok();
        });
        return message_of_lost_rank(error);
    }

    fakes::VerbsReceiverAlone alone_{ports_, 2, *waiter_};
};

TEST_F(VerbsLyingSenderTest, APieceBehindTheEndOfItsRingEndsTheLink) {
    alone_.write(alone_.memory[0], {0, 8, htobe32(immediate_of(kCollectiveChannel, kRing))}, 0);
    EXPECT_THAT(error(), HasSubstr("a write beyond its ring"));
}

TEST_F(VerbsLyingSenderTest, AnEndOfAStreamBeyondItsRingEndsTheLink) {
    alone_.slot(1).tails[kCollectiveChannel].end = kRing + 1;
    EXPECT_THAT(error(), HasSubstr("more than its ring holds"));
}

TEST_F(VerbsLyingSenderTest, AFailoverOfAQueuePairThatDoesNotExistEndsTheLink) {
    const std::string request = FailoverRequest{.lane = 2, .pieces = {}}.serialise();
    std::memcpy(alone_.slot(0).mailbox.data(), request.data(), request.size());
    alone_.write(alone_.memory.back(), {0, 0, htobe32(kMessageImmediate)}, 0);
    EXPECT_THAT(error(), HasSubstr("a failover that cannot be"));
}

/// Initiator of one-sided access; the test is its target.
class VerbsLyingTargetTest : public testing::Test {
   protected:
    void SetUp() override {
        VerbsStream forth = make_stream(initiator_, target_);
        VerbsStream back = make_stream(target_, initiator_);
        link_ = here_->connect({.out = std::move(forth.out), .in = std::move(back.in)}).value();
        in_ = std::move(forth.in);
        out_ = std::move(back.out);
        mailbox_ = std::make_unique<RmaMailbox>(*out_, *in_);
        responders_ =
            std::make_unique<RmaResponders>(*mailbox_, ports_, ConnectWay::kDirect, name_);
    }
    /// Returns the first error of the link, after progress at both ends until there is one or
    /// `is_over`.
    Status advance_until(const std::function<bool()>& is_over) {
        Status error;
        until([&] {
            EXPECT_TRUE(mailbox_->send().is_ok());
            error = link_->advance();
            const auto message = mailbox_->next().value();
            if (message) mailbox_->add(responders_->open(*message));
            return !error.is_ok() || is_over();
        });
        return error;
    }
    void give_credit(std::uint32_t immediates) {
        mailbox_->add({.kind = RmaMessage::Kind::kCredit, .pair = 1, .immediates = immediates});
    }

    VerbsHost initiator_{0};
    VerbsHost target_{1};
    std::shared_ptr<RmaTransport> here_ = initiator_.transport().one_sided().value();
    std::shared_ptr<RmaTransport> there_ = target_.transport().one_sided().value();
    const std::vector<std::shared_ptr<Port>> all_ =
        static_cast<VerbsTransport&>(target_.transport()).ports();
    const RmaPorts ports_{
        all_, all_,
        std::make_shared<Registrations>(std::vector{all_.front()->adapter}, std::vector<GpuWay>())};
    const std::string name_ = "rank 0";
    std::unique_ptr<SendLink> out_;
    std::unique_ptr<RecvLink> in_;
    std::unique_ptr<RmaMailbox> mailbox_;
    std::unique_ptr<RmaResponders> responders_;
    std::unique_ptr<RmaLink> link_;
};

TEST_F(VerbsLyingTargetTest, CreditForImmediatesThatIsTakenBackEndsTheLink) {
    const VerbsMemoryOf local(*here_, 8);
    const VerbsMemoryOf remote(*there_, 8);
    const RmaPiece piece{.local = local.registration.get(),
                         .remote = &remote.registration->descriptor(),
                         .bytes = 8};
    std::array<RmaCompletion, 1> completed;
    ASSERT_EQ(link_->post(RmaOp::kWrite, {&piece, 1}, 1).value(), 1U);
    ASSERT_TRUE(advance_until([&] { return link_->poll(completed).value() == 1; }).is_ok());
    // A notification behind an unfinished write takes an immediate.
    ASSERT_EQ(link_->post(RmaOp::kWrite, {&piece, 1}, 2).value(), 1U);
    const std::array<std::byte, 1> text{};
    ASSERT_TRUE(link_->notify(text).value());
    ASSERT_TRUE(advance_until([&] {
                    return responders_->has_arrived({.lane = 0, .pair = 1, .number = 1});
                }).is_ok());
    give_credit(1);
    give_credit(0);
    const Status error = advance_until([] { return false; });
    EXPECT_EQ(error.peer(), 1);
    EXPECT_THAT(std::string(error.message()), HasSubstr("took credit for immediates back"));
}

}  // namespace
}  // namespace pccl::transport::verbs
