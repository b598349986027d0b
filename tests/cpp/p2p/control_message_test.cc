// SPDX-License-Identifier: Apache-2.0

// What sessions say to each other, and what of it is not believed.
#include "csrc/p2p/connection/control_message.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/cpp/p2p/descriptors.h"
#include "tests/cpp/p2p/pair.h"

namespace pccl::p2p {
namespace {

/// What comes of a message on its way.
template <typename Kind>
Kind round_trip(const Kind& message) {
    const auto parsed = parse_control_message(serialise(message));
    EXPECT_TRUE(parsed.is_ok()) << parsed.status().to_string();
    return std::get<Kind>(*parsed);
}

std::vector<std::byte> damaged(const ControlMessage& message, std::size_t at, std::byte to) {
    auto bytes = serialise(message);
    bytes.at(at) = to;
    return bytes;
}

TEST(ControlMessageTest, QuestionsAndAnswersComeBackWhole) {
    const auto owner = session("a", "shm");
    const Stamped memory(*owner, 1000, 1);
    const Query requested = round_trip(Query{.number = 7, .name = "layer/3"});
    EXPECT_EQ(requested.number, 7U);
    EXPECT_EQ(requested.name, "layer/3");
    EXPECT_EQ(round_trip(Ping{.number = 6}).number, 6U);
    const Reply found =
        round_trip(Reply{.number = 8, .memory = registered(*memory.local).descriptor()});
    EXPECT_EQ(found.number, 8U);
    ASSERT_TRUE(found.memory.has_value());
    EXPECT_EQ(found.memory->id, registered(*memory.local).descriptor().id);
    const Reply none = round_trip(Reply{.number = 9, .why = "there is none"});
    EXPECT_FALSE(none.memory.has_value());
    EXPECT_EQ(none.why, "there is none");
}

TEST(ControlMessageTest, LongReasonsAreCut) {
    const Reply none = round_trip(Reply{.number = 9, .why = std::string(1 << 20, 'x')});
    EXPECT_EQ(none.why, std::string(none.why.size(), 'x'));
    EXPECT_LE(none.why.size(), 1024U);
}

TEST(ControlMessageTest, NoPartOfAMessageIsTaken) {
    const auto owner = session("a", "shm");
    const Stamped memory(*owner, 1000, 1);
    for (const ControlMessage& message :
         {ControlMessage(Query{7, "cache"}), ControlMessage(Ping{7}),
          ControlMessage(Reply{7, registered(*memory.local).descriptor()}),
          ControlMessage(Reply{7, std::nullopt, "there is none"})}) {
        const auto bytes = serialise(message);
        for (std::size_t length = 0; length < bytes.size(); ++length)
            EXPECT_FALSE(parse_control_message(std::span(bytes).first(length)).is_ok()) << length;
        auto more = bytes;
        more.push_back(std::byte{0});
        EXPECT_FALSE(parse_control_message(more).is_ok());
    }
}

TEST(ControlMessageTest, AQuestionForNoNameIsNotTaken) {
    const std::size_t last = serialise(Query{7, "cache"}).size() - 1;
    EXPECT_FALSE(parse_control_message(damaged(Query{7, "cache"}, last, std::byte{' '})).is_ok());
    EXPECT_FALSE(parse_control_message(damaged(Query{7, "cache"}, last, std::byte{0xFF})).is_ok());
    EXPECT_FALSE(parse_control_message(serialise(Query{7, ""})).is_ok());
    EXPECT_FALSE(parse_control_message(serialise(Query{7, std::string(65, 'x')})).is_ok());
    EXPECT_FALSE(parse_control_message(damaged(Query{7, "cache"}, 0, std::byte{9})).is_ok())
        << "of no kind";
}

}  // namespace
}  // namespace pccl::p2p
