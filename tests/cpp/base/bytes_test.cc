// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <random>

namespace pccl {
namespace {

using ::testing::HasSubstr;

TEST(BytesTest, WhatIsWrittenIsRead) {
    ByteWriter out;
    out.u8(0xFE);
    out.u16(0xBEEF);
    out.u32(0xDEADBEEF);
    out.u64(0x0123456789ABCDEF);
    out.i64(std::numeric_limits<std::int64_t>::min());
    out.text("host-7");
    out.text("");
    out.raw(std::as_bytes(std::span("xyz", 3)));
    const std::string blob = out.take();
    EXPECT_EQ(out.size(), 0U);

    ByteReader in(blob);
    std::uint8_t small = 0;
    std::uint16_t medium = 0;
    std::uint32_t large = 0;
    std::uint64_t huge = 0;
    std::int64_t negative = 0;
    std::string host;
    std::string empty = "stale";
    std::array<std::byte, 3> raw{};
    ASSERT_TRUE(in.u8(small).is_ok());
    ASSERT_TRUE(in.u16(medium).is_ok());
    ASSERT_TRUE(in.u32(large).is_ok());
    ASSERT_TRUE(in.u64(huge).is_ok());
    ASSERT_TRUE(in.i64(negative).is_ok());
    ASSERT_TRUE(in.text(host, 100).is_ok());
    ASSERT_TRUE(in.text(empty, 100).is_ok());
    ASSERT_TRUE(in.raw(raw).is_ok());
    EXPECT_TRUE(in.finish().is_ok());
    EXPECT_EQ(small, 0xFE);
    EXPECT_EQ(medium, 0xBEEF);
    EXPECT_EQ(large, 0xDEADBEEF);
    EXPECT_EQ(huge, 0x0123456789ABCDEFU);
    EXPECT_EQ(negative, std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(host, "host-7");
    EXPECT_EQ(empty, "");
    EXPECT_EQ(std::memcmp(raw.data(), "xyz", 3), 0);
}

TEST(BytesTest, TheFormatIsLittleEndianWithoutPadding) {
    ByteWriter out;
    out.u8(1);
    out.u32(0x04030201);
    out.text("ab");
    EXPECT_EQ(out.take(), std::string("\x01\x01\x02\x03\x04\x02\x00\x00\x00"
                                      "ab",
                                      11));
}

TEST(BytesTest, TruncationNamesThePlaceAndLeavesTheTarget) {
    ByteReader in("12345678abcd");
    std::uint64_t value = 0;
    ASSERT_TRUE(in.u64(value).is_ok());
    std::uint64_t untouched = 99;
    const Status status = in.u64(untouched);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("truncated at byte 12"));
    EXPECT_EQ(untouched, 99U);
    EXPECT_EQ(in.remaining(), 4U);
}

TEST(BytesTest, ATextLongerThanAllowedOrThanTheBlobIsRefused) {
    ByteWriter out;
    out.text("0123456789");
    const std::string blob = out.take();
    std::string value;
    EXPECT_THAT(ByteReader(blob).text(value, 9).message(), HasSubstr("longer than the 9 allowed"));
    EXPECT_THAT(ByteReader(blob.substr(0, 8)).text(value, 10).message(), HasSubstr("truncated"));
    const std::string lie("\xFF\xFF\xFF\xFFzz", 6);
    EXPECT_THAT(ByteReader(lie).text(value, std::numeric_limits<std::size_t>::max()).message(),
                HasSubstr("truncated"));
    EXPECT_EQ(value, "");
}

TEST(BytesTest, BytesAfterTheEndAreRefused) {
    EXPECT_THAT(ByteReader("abc").finish().message(), HasSubstr("3 bytes too many"));
}

TEST(BytesTest, AStatusComesBackWithItsPeerAndACutMessage) {
    ByteWriter out;
    out.status(Status::peer_lost(7, "rank 7 is gone"), 6);
    out.status(Status::ok(), 6);
    const std::string blob = out.take();
    ByteReader in(blob);
    Status lost;
    Status fine = Status::timeout("to be replaced");
    ASSERT_TRUE(in.status(lost, 6).is_ok());
    ASSERT_TRUE(in.status(fine, 6).is_ok());
    EXPECT_TRUE(in.finish().is_ok());
    EXPECT_EQ(lost.code(), StatusCode::kPeerLost);
    EXPECT_EQ(lost.peer(), 7);
    EXPECT_EQ(lost.message(), "rank 7");
    EXPECT_TRUE(fine.is_ok());
    ByteWriter unknown;
    unknown.u32(1000);
    unknown.i64(0);
    unknown.text("");
    const std::string damaged = unknown.take();
    EXPECT_THAT(ByteReader(damaged).status(lost, 6).message(), HasSubstr("code 1000 at byte 0"));
    EXPECT_EQ(lost.peer(), 7) << "left as it was";
}

TEST(BytesTest, RandomReadsOfRandomBytesStayInside) {
    std::mt19937 random(20);
    for (int round = 0; round < 20'000; ++round) {
        std::string blob(random() % 40, '\0');
        for (char& c : blob) c = static_cast<char>(random() % 4 == 0 ? random() : random() % 8);
        ByteReader in(blob);
        for (Status status; status.is_ok() && in.remaining() > 0;) {
            const std::size_t before = in.offset();
            std::uint8_t small = 0;
            std::uint32_t large = 0;
            std::string text;
            std::array<std::byte, 5> raw{};
            switch (random() % 4) {
                case 0:
                    status = in.u8(small);
                    break;
                case 1:
                    status = in.u32(large);
                    break;
                case 2:
                    status = in.text(text, 16);
                    break;
                default:
                    status = in.raw(raw);
            }
            ASSERT_LE(in.offset(), blob.size());
            ASSERT_LE(text.size(), 16U);
            ASSERT_TRUE(!status.is_ok() || in.offset() > before);
        }
    }
}

}  // namespace
}  // namespace pccl
