// SPDX-License-Identifier: Apache-2.0

// Queue pairs that a peer opens here, and its immediates on them.
#include <endian.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "csrc/transport/verbs/rma_requests.h"
#include "csrc/transport/verbs/rma_responders.h"
#include "tests/cpp/transport/verbs_links.h"
#include "tests/fakes/memory_links.h"

namespace pccl::transport::verbs {
namespace {

class VerbsRmaRespondersTest : public testing::Test {
   protected:
    using Kind = RmaMessage::Kind;

    /// Opens that queue pair of lane 0 from this process to itself.
    void open(std::uint32_t pair) {
        initiator_ =
            QueuePair::create(ports_.of_initiator(0), {.sends = 64, .receives = 1}).value();
        const RmaMessage opened = responders_.open(
            {.kind = Kind::kOpen, .pair = pair, .end = {.pair = initiator_->address()}});
        ASSERT_TRUE(opened.failure.is_ok()) << opened.failure.to_string();
        EXPECT_EQ(opened.pair, pair);
        ASSERT_TRUE(initiator_->connect(opened.end.pair).is_ok());
    }
    void post(std::uint32_t immediate) {
        ibv_send_wr request{};
        request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        request.imm_data = htobe32(immediate);
        ASSERT_TRUE(initiator_->post(request).is_ok());
    }
    RmaMessage close(std::uint32_t pair) {
        return responders_.close({.kind = Kind::kClose, .pair = pair});
    }

    VerbsHost host_{0};
    std::shared_ptr<fakes::MemoryStream> stream_ = std::make_shared<fakes::MemoryStream>();
    fakes::MemorySendLink out_{stream_};
    fakes::MemoryRecvLink in_{stream_};
    RmaMailbox mailbox_{out_, in_};
    const std::vector<std::shared_ptr<Port>> all_ =
        static_cast<VerbsTransport&>(host_.transport()).ports();
    const RmaPorts ports_{
        all_, all_,
        std::make_shared<Registrations>(std::vector{all_.front()->adapter}, std::vector<GpuWay>())};
    const std::string name_ = "rank 1";
    RmaResponders responders_{mailbox_, ports_, ConnectWay::kDirect, name_};
    std::unique_ptr<QueuePair> initiator_;
};

TEST_F(VerbsRmaRespondersTest, AnImmediateArrivesOnItsQueuePairAlone) {
    open(1);
    EXPECT_FALSE(responders_.has_arrived({.lane = 0, .pair = 1, .number = 1}));
    post(1);
    EXPECT_TRUE(responders_.has_arrived({.lane = 0, .pair = 1, .number = 1}));
    EXPECT_FALSE(responders_.has_arrived({.lane = 0, .pair = 1, .number = 2}));
    EXPECT_FALSE(responders_.has_arrived({.lane = 1, .pair = 1, .number = 1}));
    EXPECT_FALSE(responders_.has_arrived({.lane = 99, .pair = 1, .number = 1}));
    open(2);
    post(1);
    EXPECT_TRUE(responders_.has_arrived({.lane = 0, .pair = 2, .number = 1}));
    EXPECT_FALSE(responders_.has_arrived({.lane = 0, .pair = 1, .number = 1}));
}

TEST_F(VerbsRmaRespondersTest, TheEndOfAQueuePairCountsWhatHadArrived) {
    open(1);
    for (std::uint32_t i = 1; i <= 3; ++i) post(i);
    const RmaMessage other = close(2);
    EXPECT_EQ(other.immediates, 0U) << "it does not exist";
    const RmaMessage closed = close(1);
    EXPECT_EQ(closed.kind, Kind::kClosed);
    EXPECT_EQ(closed.pair, 1U);
    EXPECT_EQ(closed.immediates, 3U);
    post(4);
    EXPECT_TRUE(responders_.has_arrived({.lane = 0, .pair = 1, .number = 3}));
    EXPECT_FALSE(responders_.has_arrived({.lane = 0, .pair = 1, .number = 4}));
    EXPECT_EQ(close(1).immediates, 3U) << "the answer stays";
}

TEST_F(VerbsRmaRespondersTest, CreditFollowsHalfOfTheReceives) {
    open(1);
    constexpr std::uint32_t kHalf = kImmediatesOfPair / 2;
    for (std::uint32_t i = 1; i < kHalf; ++i) post(i);
    EXPECT_TRUE(responders_.has_arrived({.lane = 0, .pair = 1, .number = kHalf - 1}));
    ASSERT_TRUE(mailbox_.send().is_ok());
    EXPECT_FALSE(mailbox_.next().value().has_value());
    post(kHalf);
    EXPECT_TRUE(responders_.has_arrived({.lane = 0, .pair = 1, .number = kHalf}));
    ASSERT_TRUE(mailbox_.send().is_ok());
    const auto credit = mailbox_.next().value();
    ASSERT_TRUE(credit.has_value());
    EXPECT_EQ(credit->kind, Kind::kCredit);
    EXPECT_EQ(credit->pair, 1U);
    EXPECT_EQ(credit->immediates, kHalf);
}

TEST_F(VerbsRmaRespondersTest, AnImmediateOutOfOrderEndsTheQueuePair) {
    open(1);
    post(2);
    EXPECT_FALSE(responders_.has_arrived({.lane = 0, .pair = 1, .number = 1}));
    post(1);
    EXPECT_FALSE(responders_.has_arrived({.lane = 0, .pair = 1, .number = 1}));
    EXPECT_EQ(close(1).immediates, 0U);
}

}  // namespace
}  // namespace pccl::transport::verbs
