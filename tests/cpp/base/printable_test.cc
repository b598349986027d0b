// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/text/printable.h"

#include <gtest/gtest.h>

namespace pccl {
namespace {

std::string shown(std::string_view text) { return printable(text, 1000); }

TEST(PrintableTest, KeepsWhatPeopleRead) {
    for (const std::string_view text : {"", "port 3 is busy", "Grüße, 世界, é, 𝄞 😀", "a~ b"})
        EXPECT_EQ(shown(text), text);
}

TEST(PrintableTest, IsOneLine) { EXPECT_EQ(shown("a\nb\r\n\tc"), "a b   c"); }

TEST(PrintableTest, ShowsNoControlsNorWhatTurnsText) {
    EXPECT_EQ(shown("a\x1b[31mb\x7f"), "a?[31mb?");
    // CSI as one character of C1; right-to-left override; isolates; mark; separators of lines.
    EXPECT_EQ(shown("a\xc2\x9b"
                    "31mb"),
              "a?31mb");
    EXPECT_EQ(shown("a\xe2\x80\xae"
                    "b\xe2\x81\xa6"
                    "c\xd8\x9c"
                    "d"),
              "a?b?c?d");
    EXPECT_EQ(shown("a\xe2\x80\xa8"
                    "b\xe2\x80\x8b"
                    "c\xef\xbb\xbf"
                    "d"),
              "a?b?c?d");
    EXPECT_EQ(shown("a\xf3\xa0\x81\x81"
                    "b"),
              "a?b");
}

TEST(PrintableTest, ShowsNoBytesThatAreNoUtf8) {
    EXPECT_EQ(shown("a\xff"
                    "b"),
              "a?b");
    EXPECT_EQ(shown("a\x9b"
                    "b"),
              "a?b");
    EXPECT_EQ(shown("a\xc0\x9b"
                    "b"),
              "a?b");  // overlong
    EXPECT_EQ(shown("a\xed\xa0\x80"
                    "b"),
              "a?b");  // a surrogate
    EXPECT_EQ(shown("a\xf4\x90\x80\x80"
                    "b"),
              "a?b");  // beyond Unicode
    EXPECT_EQ(shown("a\xe2\x80"), "a?");
}

TEST(PrintableTest, CutsBetweenCharacters) {
    EXPECT_EQ(printable("abcdef", 6), "abcdef");
    EXPECT_EQ(printable("abcdef", 4), "abcd...");
    EXPECT_EQ(printable("ab\xc3\xa9", 3), "ab...");
}

}  // namespace
}  // namespace pccl
