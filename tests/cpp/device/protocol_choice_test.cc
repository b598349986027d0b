// By which protocol the messages of a schedule go, and what is said of it.

#include "csrc/device/programs/protocol_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pccl::device {
namespace {

using abi::LineTrial;
using kernels::Protocol;
using schedule::MessageProtocol;
using ::testing::HasSubstr;

/// Of short messages between GPUs that keep lines whole.
ProtocolQuestion short_ones() {
    return {.chunk_bytes = 1024,
            .suits_words = true,
            .lines = LineTrial::kWhole,
            .thresholds = kernels::thresholds_of(kernels::kHopper).schedules};
}

TEST(ProtocolChoiceTest, AScheduleGetsWhatItWants) {
    ProtocolQuestion question = short_ones();
    EXPECT_EQ(choose_protocol(question).protocol, Protocol::kWords);
    question.wanted = MessageProtocol::kLines;
    EXPECT_EQ(choose_protocol(question).protocol, Protocol::kLines);
    EXPECT_THAT(choose_protocol(question).why, HasSubstr("its capsule asks"));
    question.wanted = MessageProtocol::kDirect;
    EXPECT_EQ(choose_protocol(question).protocol, Protocol::kDirect);
    question.chunk_bytes = 1U << 30U;
    question.wanted = MessageProtocol::kLines;
    EXPECT_EQ(choose_protocol(question).protocol, Protocol::kLines);
    EXPECT_STREQ(choose_protocol(question).obstacle, "");
}

TEST(ProtocolChoiceTest, LinesAreTakenWhereWordsWouldNeedFurtherWindows) {
    ProtocolQuestion question = short_ones();
    question.is_short = false;
    EXPECT_EQ(choose_protocol(question).protocol, Protocol::kLines);
    question.lines = LineTrial::kTorn;
    EXPECT_EQ(choose_protocol(question).protocol, Protocol::kWords);
}

TEST(ProtocolChoiceTest, TheGroupsOptionsCountMore) {
    ProtocolQuestion question = short_ones();
    question.wanted = MessageProtocol::kLines;
    question.preferred = Protocol::kDirect;
    EXPECT_EQ(choose_protocol(question).protocol, Protocol::kDirect);
    EXPECT_THAT(choose_protocol(question).why, HasSubstr("the group's options ask"));
}

TEST(ProtocolChoiceTest, WhatCannotBeHadIsTheUsualChoiceAndSaidWhy) {
    ProtocolQuestion torn = short_ones();
    torn.wanted = MessageProtocol::kLines;
    for (const LineTrial trial : {LineTrial::kNone, LineTrial::kTorn}) {
        torn.lines = trial;
        const ProtocolChoice choice = choose_protocol(torn);
        EXPECT_EQ(choice.protocol, Protocol::kWords);
        EXPECT_THAT(choice.why, HasSubstr("messages are short"));
        EXPECT_THAT(choice.obstacle, HasSubstr("lines were asked for, but they do not come whole"));
    }
    ProtocolQuestion large = short_ones();
    large.wanted = MessageProtocol::kWords;
    large.suits_words = false;
    large.chunk_bytes = 1U << 20U;
    const ProtocolChoice choice = choose_protocol(large);
    EXPECT_EQ(choice.protocol, Protocol::kLines);
    EXPECT_THAT(choice.obstacle, HasSubstr("words were asked for, but this is too much for them"));
}

TEST(ProtocolChoiceTest, LinesThatWouldBeTakenAreMissedAloud) {
    ProtocolQuestion question = short_ones();
    question.suits_words = false;
    question.lines = LineTrial::kTorn;
    EXPECT_EQ(choose_protocol(question).protocol, Protocol::kDirect);
    EXPECT_THAT(choose_protocol(question).obstacle, HasSubstr("do not come whole"));
    question.chunk_bytes = 1U << 30U;
    EXPECT_STREQ(choose_protocol(question).obstacle, "");
}

}  // namespace
}  // namespace pccl::device
