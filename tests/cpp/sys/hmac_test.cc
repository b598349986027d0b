// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "csrc/sys/crypto/sha256.h"

namespace pccl::sys {
namespace {

std::vector<std::uint8_t> bytes(std::string_view text) { return {text.begin(), text.end()}; }

std::string hex(const Digest& digest) {
    std::string text;
    for (const std::uint8_t byte : digest) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

TEST(HmacTest, AgreesWithTheVectorsOfRfc4231) {
    EXPECT_EQ(hex(hmac_sha256(std::vector<std::uint8_t>(20, 0x0b), bytes("Hi There"))),
              "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    EXPECT_EQ(hex(hmac_sha256(bytes("Jefe"), bytes("what do ya want for nothing?"))),
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    EXPECT_EQ(hex(hmac_sha256(std::vector<std::uint8_t>(131, 0xaa),
                              bytes("Test Using Larger Than Block-Size Key - Hash Key First"))),
              "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(HmacTest, ComparesWholeDigests) {
    Digest a = hmac_sha256(bytes("key"), bytes("message"));
    Digest b = a;
    EXPECT_TRUE(equal_in_constant_time(a, b));
    for (std::uint8_t& byte : b) {
        byte ^= 0x80;
        EXPECT_FALSE(equal_in_constant_time(a, b));
        byte ^= 0x80;
    }
}

TEST(HmacTest, RandomBytesDoNotRepeat) {
    Digest a{};
    Digest b{};
    ASSERT_TRUE(fill_random(a).is_ok());
    ASSERT_TRUE(fill_random(b).is_ok());
    EXPECT_NE(a, b);
    EXPECT_NE(a, Digest{});
}

}  // namespace
}  // namespace pccl::sys
