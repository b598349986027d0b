// SPDX-License-Identifier: Apache-2.0
#include "csrc/netconf/frame.h"

#include <gmock/gmock.h>

#include <vector>

#include "csrc/base/text/text.h"

namespace pccl::netconf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t kAllAtOnce = 1U << 20U;

/// The messages in `bytes`, handed over so many at a time, and the error that ends them.
struct Read {
    std::vector<std::string> messages;
    Status fault;
};

Read read(FrameReader reader, std::string_view bytes, std::size_t at_a_time = kAllAtOnce) {
    Read read;
    while (!bytes.empty()) {
        reader.add(bytes.substr(0, at_a_time));
        bytes.remove_prefix(std::min(at_a_time, bytes.size()));
        for (;;) {
            auto message = reader.next();
            read.fault = message.status();
            if (!message.is_ok()) return read;
            if (!message->has_value()) break;
            read.messages.push_back(**message);
        }
    }
    return read;
}

FrameReader chunked(std::size_t most_bytes = FrameReader::kMostBytes) {
    FrameReader reader(most_bytes);
    reader.set_framing(Framing::kChunked);
    return reader;
}

// RFC 6242, section 4.2: a message of 4 + 18 + 79 bytes in three chunks, and what it says.
constexpr std::string_view kExample =
    "\n#4\n<rpc\n#18\n message-id=\"102\"\n\n#79\n     xmlns=\"urn:ietf:params:xml:ns:netconf:"
    "base:1.0\">\n  <close-session/>\n</rpc>\n##\n";
constexpr std::string_view kReceived =
    "<rpc message-id=\"102\"\n     xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\">\n"
    "  <close-session/>\n</rpc>";

TEST(FrameTest, ReadsTheExampleOfTheRfcHoweverItArrives) {
    for (const std::size_t at_a_time : {1, 2, 3, 5, 7, 1000})
        EXPECT_THAT(read(chunked(), kExample, at_a_time).messages, ElementsAre(kReceived));
}

TEST(FrameTest, WritesAMessageAsOneChunkAndWithAnEnd) {
    EXPECT_EQ(framed("<a/>", Framing::kChunked), "\n#4\n<a/>\n##\n");
    EXPECT_EQ(framed("<a/>", Framing::kEndOfMessage), "<a/>]]>]]>");
}

TEST(FrameTest, ReadsMessagesThatFollowEachOther) {
    const std::string two = concat(framed("<a/>", Framing::kChunked), kExample);
    EXPECT_THAT(read(chunked(), two).messages, ElementsAre("<a/>", kReceived));
    for (const std::size_t at_a_time : {1, 4, 1000})
        EXPECT_THAT(read(FrameReader(), "<a/>]]>]]><b/>]]>]]>", at_a_time).messages,
                    ElementsAre("<a/>", "<b/>"));
}

TEST(FrameTest, ChangesItsFramingBehindAHello) {
    FrameReader reader;
    reader.add("<hello/>]]>]]>\n#4\n<a/>\n##\n");
    EXPECT_EQ(reader.next()->value(), "<hello/>");
    reader.set_framing(Framing::kChunked);
    EXPECT_EQ(reader.next()->value(), "<a/>");
    EXPECT_FALSE(reader.next()->has_value());
}

TEST(FrameTest, SkipsWhiteSpaceBetweenMessages) {
    for (const std::size_t at_a_time : {1, 2, 1000}) {
        EXPECT_THAT(read(FrameReader(), "\n<a/>]]>]]>\n\r\n <b/>]]>]]>\n", at_a_time).messages,
                    ElementsAre("<a/>", "<b/>"));
        const Read chunks =
            read(chunked(), concat("\n \r\n", kExample, "\n\n", kExample, "\n"), at_a_time);
        EXPECT_THAT(chunks.messages, ElementsAre(kReceived, kReceived));
        EXPECT_TRUE(chunks.fault.is_ok()) << chunks.fault.message();
    }
    FrameReader reader;
    reader.add("<hello/>]]>]]>\n\n#4\n<a/>\n##\n");
    EXPECT_EQ(reader.next()->value(), "<hello/>");
    reader.set_framing(Framing::kChunked);
    EXPECT_EQ(reader.next()->value(), "<a/>");
}

TEST(FrameTest, AllowsNoneWithinAMessage) {
    EXPECT_THAT(read(chunked(), "\n#2\n<a\n\n#2\n/>\n##\n").fault.message(),
                HasSubstr("does not begin with a line feed and #"));
    EXPECT_THAT(read(chunked(), "\n #4\n<a/>").fault.message(), HasSubstr("does not begin with"));
}

TEST(FrameTest, KeepsNoWhiteSpaceThatNeverEnds) {
    FrameReader reader(8);
    FrameReader chunks = chunked(8);
    for (int i = 0; i < 100; ++i) {
        reader.add(std::string(1000, '\n'));
        chunks.add(std::string(1000, '\n'));
        EXPECT_FALSE(reader.next()->has_value());
        EXPECT_FALSE(chunks.next()->has_value());
    }
    reader.add("<a/>]]>]]>");
    chunks.add("#4\n<a/>\n##\n");
    EXPECT_EQ(reader.next()->value(), "<a/>");
    EXPECT_EQ(chunks.next()->value(), "<a/>");
}

TEST(FrameTest, DoesNotTakeAnEndInsideAChunkForOne) {
    EXPECT_THAT(read(chunked(), "\n#6\n]]>]]>\n##\n").messages, ElementsAre("]]>]]>"));
}

TEST(FrameTest, RefusesWhatTheGrammarForbids) {
    for (const std::string_view bytes :
         {"#4\n<a/>", "\n#04\n<a/>", "\n#0\n", "\n#-1\n", "\n#4294967296\n", "\n#12345678901",
          "\n##\n", "\n#4 \n", "<a/>]]>]]>", "\n#\n", "\n###\n"}) {
        const Status fault = read(chunked(), bytes).fault;
        EXPECT_EQ(fault.code(), StatusCode::kPeerLost) << bytes;
        EXPECT_THAT(fault.message(), HasSubstr("no NETCONF")) << bytes;
    }
}

TEST(FrameTest, RefusesAMessageThatIsTooLongBeforeItHasCome) {
    EXPECT_THAT(read(chunked(8), "\n#9\n").fault.message(), HasSubstr("longer than 8 bytes"));
    EXPECT_THAT(read(chunked(8), "\n#5\n12345\n#4\n").fault.message(), HasSubstr("longer than 8"));
    EXPECT_THAT(read(FrameReader(8), "123456789").fault.message(), HasSubstr("longer than 8"));
    EXPECT_TRUE(read(chunked(8), "\n#5\n12345\n#3\n678\n##\n").fault.is_ok());
}

TEST(FrameTest, ReadsVeryManySmallChunksAtOnce) {
    constexpr int kChunks = 1 << 18;
    std::string bytes;
    for (int i = 0; i < kChunks; ++i) bytes += "\n#1\na";
    bytes += "\n##\n";
    EXPECT_THAT(read(chunked(), bytes, bytes.size()).messages,
                ElementsAre(std::string(kChunks, 'a')));
}

}  // namespace
}  // namespace pccl::netconf
