// SPDX-License-Identifier: Apache-2.0

// By which protocol the messages of a schedule go, and what is said of it.

#include "csrc/device/programs/protocol_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pccl::device {
namespace {

using abi::LL128Trial;
using kernels::Protocol;
using schedule::MessageProtocol;
using ::testing::HasSubstr;

/// Of short messages between GPUs that keep lines whole.
ProtocolQuestion short_ones() {
    return {.chunk_bytes = 1024,
            .suits_ll = true,
            .ll128 = LL128Trial::kWhole,
            .thresholds = kernels::thresholds_of(kernels::kHopper).schedules};
}

TEST(ProtocolChoiceTest, AScheduleGetsWhatItWants) {
    ProtocolQuestion question = short_ones();
    EXPECT_EQ(choose_protocol(question).protocol, Protocol::kLL);
    question.wanted = MessageProtocol::kLL128;
    EXPECT_EQ(choose_protocol(question).protocol, Protocol::kLL128);
    EXPECT_THAT(choose_protocol(question).why, HasSubstr("its capsule requests"));
    question.wanted = MessageProtocol::kDirect;
    EXPECT_EQ(choose_protocol(question).protocol, Protocol::kDirect);
    question.chunk_bytes = 1U << 30U;
    question.wanted = MessageProtocol::kLL128;
    EXPECT_EQ(choose_protocol(question).protocol, Protocol::kLL128);
    EXPECT_STREQ(choose_protocol(question).obstacle, "");
}

TEST(ProtocolChoiceTest, LL128IsTakenWhereLLWouldNeedFurtherWindows) {
    ProtocolQuestion question = short_ones();
    question.is_short = false;
    EXPECT_EQ(choose_protocol(question).protocol, Protocol::kLL128);
    question.ll128 = LL128Trial::kTorn;
    EXPECT_EQ(choose_protocol(question).protocol, Protocol::kLL);
}

TEST(ProtocolChoiceTest, TheGroupsOptionsCountMore) {
    ProtocolQuestion question = short_ones();
    question.wanted = MessageProtocol::kLL128;
    question.preferred = Protocol::kDirect;
    EXPECT_EQ(choose_protocol(question).protocol, Protocol::kDirect);
    EXPECT_THAT(choose_protocol(question).why, HasSubstr("the group's options request"));
}

TEST(ProtocolChoiceTest, AnImpossibleProtocolBecomesTheUsualChoiceWithAReason) {
    ProtocolQuestion torn = short_ones();
    torn.wanted = MessageProtocol::kLL128;
    for (const LL128Trial trial : {LL128Trial::kNone, LL128Trial::kTorn}) {
        torn.ll128 = trial;
        const ProtocolChoice choice = choose_protocol(torn);
        EXPECT_EQ(choice.protocol, Protocol::kLL);
        EXPECT_THAT(choice.why, HasSubstr("messages are short"));
        EXPECT_THAT(choice.obstacle,
                    HasSubstr("ll128 was requested, but its lines do not arrive whole"));
    }
    ProtocolQuestion large = short_ones();
    large.wanted = MessageProtocol::kLL;
    large.suits_ll = false;
    large.chunk_bytes = 1U << 20U;
    const ProtocolChoice choice = choose_protocol(large);
    EXPECT_EQ(choice.protocol, Protocol::kLL128);
    EXPECT_THAT(choice.obstacle,
                HasSubstr("ll was requested, but the message is too large for it"));
}

TEST(ProtocolChoiceTest, LinesThatWouldBeTakenAreMissedAloud) {
    ProtocolQuestion question = short_ones();
    question.suits_ll = false;
    question.ll128 = LL128Trial::kTorn;
    EXPECT_EQ(choose_protocol(question).protocol, Protocol::kDirect);
    EXPECT_THAT(choose_protocol(question).obstacle, HasSubstr("do not arrive whole"));
    question.chunk_bytes = 1U << 30U;
    EXPECT_STREQ(choose_protocol(question).obstacle, "");
}

}  // namespace
}  // namespace pccl::device
