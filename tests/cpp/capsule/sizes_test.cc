// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/sizes.h"

#include <gtest/gtest.h>

#include "tests/cpp/capsule/written_capsules.h"

namespace pccl::capsule {
namespace {

using schedule::SizeRange;

TEST(SizesTest, AreReadAsTheyAreWritten) {
    const auto sizes = [](std::string_view text) { return parse_sizes(text).value(); };
    EXPECT_EQ(sizes("1MB.."), (SizeRange{.least = 1U << 20U}));
    EXPECT_EQ(sizes("..64K"), (SizeRange{.most = 64U << 10U}));
    EXPECT_EQ(sizes("512..2gb"), (SizeRange{.least = 512, .most = 2ULL << 30U}));
    EXPECT_EQ(sizes(".."), SizeRange{});
    EXPECT_FALSE(sizes("by name").has(0));
    for (const char* text : {"1MB..", "..64KB", "512..2GB", "..", "by name", "3..3"})
        EXPECT_EQ(to_text(sizes(text)), text);
    for (const char* wrong :
         {"", "1MB", "2..1", "x..", "..1TB", "1..2..3", "-1..", "99999999999GB.."})
        EXPECT_FALSE(parse_sizes(wrong).is_ok()) << wrong;
}

}  // namespace
}  // namespace pccl::capsule
