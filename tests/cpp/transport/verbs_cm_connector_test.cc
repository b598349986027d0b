// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <span>

#include "csrc/transport/verbs/cm_connector.h"
#include "tests/cpp/transport/verbs_links.h"

namespace pccl::transport::verbs {
namespace {

using testing::HasSubstr;

const std::shared_ptr<Port>& port_of(VerbsHost& host) {
    return dynamic_cast<VerbsTransport&>(host.transport()).ports().front();
}

/// Responder on one host, whose two queue pairs wait for those of another.
class CmConnectorTest : public testing::Test {
   protected:
    static constexpr std::size_t kPairs = 2;
    using Pairs = std::array<std::unique_ptr<QueuePair>, kPairs>;

    CmConnectorTest() {
        here_ = make_pairs(first_);
        there_ = make_pairs(second_);
        std::array<LaneEnd, kPairs> initiator = ends_of(here_);
        EXPECT_TRUE(responder_.start(pointers(there_), initiator).is_ok());
        described_ = ends_of(there_);
        responder_.describe(described_);
    }

    static Pairs make_pairs(VerbsHost& host) {
        Pairs pairs;
        for (auto& pair : pairs) pair = QueuePair::create(port_of(host), {}).value();
        return pairs;
    }
    static std::array<LaneEnd, kPairs> ends_of(const Pairs& pairs) {
        std::array<LaneEnd, kPairs> ends;
        for (std::size_t i = 0; i < kPairs; ++i) ends[i].pair = pairs[i]->address();
        return ends;
    }
    static std::array<QueuePair*, kPairs> pointers(const Pairs& pairs) {
        return {pairs[0].get(), pairs[1].get()};
    }

    /// Lets both sides go on until the initiator is connected, or fails.
    Status connect(CmInitiator& initiator) {
        Status outcome;
        until([&] {
            is_responder_done_ = responder_.advance().value();
            const auto done = initiator.advance();
            outcome = done.status();
            return !done.is_ok() || *done;
        });
        return outcome;
    }

    VerbsHost first_{0};
    VerbsHost second_{1};
    Pairs here_;
    Pairs there_;
    CmResponder responder_;
    std::array<LaneEnd, kPairs> described_;
    bool is_responder_done_ = false;
};

TEST_F(CmConnectorTest, ConnectsThePairsInTheirOrder) {
    CmInitiator initiator;
    ASSERT_TRUE(initiator.start(pointers(here_), described_).is_ok());
    EXPECT_TRUE(connect(initiator).is_ok());
    until([&] { return responder_.advance().value(); });
}

TEST_F(CmConnectorTest, AStrangerIsRejectedAndTakesNoPlace) {
    const Pairs strange = make_pairs(first_);
    for (std::size_t byte = 0; byte < described_[0].door.token.size(); byte += 5) {
        auto forged = described_;
        for (LaneEnd& end : forged) end.door.token[byte] ^= 1;
        CmInitiator stranger;
        ASSERT_TRUE(stranger.start(pointers(strange), forged).is_ok());
        const Status refused = connect(stranger);
        EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
        EXPECT_THAT(refused.message(), HasSubstr("REJECTED"));
        EXPECT_FALSE(is_responder_done_);
    }
    CmInitiator initiator;
    ASSERT_TRUE(initiator.start(pointers(here_), described_).is_ok());
    EXPECT_TRUE(connect(initiator).is_ok());
    until([&] { return responder_.advance().value(); });
}

TEST_F(CmConnectorTest, ASecondRequestForAPairIsRejected) {
    CmInitiator initiator;
    const auto pairs = pointers(here_);
    ASSERT_TRUE(initiator.start(std::span(pairs).first(1), described_).is_ok());
    EXPECT_TRUE(connect(initiator).is_ok());
    EXPECT_FALSE(is_responder_done_);
    const Pairs others = make_pairs(first_);
    CmInitiator second;
    ASSERT_TRUE(second.start(pointers(others), described_).is_ok());
    EXPECT_EQ(connect(second).code(), StatusCode::kUnavailable);
}

TEST_F(CmConnectorTest, APeerWithoutADoorIsNamed) {
    for (LaneEnd& end : described_) end.door = {};
    CmInitiator initiator;
    const Status refused = initiator.start(pointers(here_), described_);
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(refused.message(), HasSubstr("no way to connect by rdma_cm"));
}

}  // namespace
}  // namespace pccl::transport::verbs
