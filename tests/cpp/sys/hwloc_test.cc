// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/hwloc/hwloc.h"

#include <gmock/gmock.h>

namespace pccl::sys {
namespace {

using ::testing::HasSubstr;

TEST(HwlocTest, WritesWhatItSees) {
    const auto xml = read_hwloc();
    if (!xml.is_ok()) GTEST_SKIP() << xml.status().message();
    EXPECT_THAT(*xml, HasSubstr("<topology version=\"2."));
    EXPECT_THAT(*xml, HasSubstr("type=\"NUMANode\""));
}

TEST(HwlocTest, NamesTheLibraryThatIsMissing) {
    const auto xml = read_hwloc("libhwloc-of-nobody.so.15");
    EXPECT_EQ(xml.status().code(), StatusCode::kUnavailable);
    EXPECT_THAT(xml.status().message(), HasSubstr("libhwloc-of-nobody.so.15"));
    EXPECT_THAT(read_hwloc("libc.so.6").status().message(), HasSubstr("no hwloc 2"));
}

}  // namespace
}  // namespace pccl::sys
