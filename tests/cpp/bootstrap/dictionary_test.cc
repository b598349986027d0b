// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/rendezvous/dictionary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/base/ids.h"
#include "csrc/bootstrap/rendezvous/entry.h"

namespace pccl::bootstrap {
namespace {

using ::testing::HasSubstr;

TEST(DictionaryTest, OneOwnerDoesNotFillIt) {
    Dictionary entries;
    const std::string value(kLongestValue, 'v');
    int taken = 0;
    Status status;
    while ((status = entries.set(std::to_string(taken), value, 7)).is_ok()) ++taken;
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(status.message(), HasSubstr("of this rank"));
    EXPECT_NEAR(taken, 1024, 4);  // 64 MiB
    // What is there may change, what others have counts for them, what goes makes room.
    EXPECT_TRUE(entries.set("0", value, 7).is_ok());
    EXPECT_TRUE(entries.set("other", value, 8).is_ok());
    EXPECT_FALSE(entries.set("one more", value, 7).is_ok());
    EXPECT_TRUE(entries.set("0", value, 8).is_ok());
    EXPECT_TRUE(entries.set("one more", value, 7).is_ok());
    EXPECT_FALSE(entries.set("and another", value, 7).is_ok());
    entries.remove("one more");
    EXPECT_TRUE(entries.set("and another", value, 7).is_ok());
}

TEST(DictionaryTest, AllOwnersTogetherAreBounded) {
    Dictionary entries;
    const std::string value(kLongestValue, 'v');
    std::uint64_t taken = 0;
    while (entries.set(std::to_string(taken), value, 1 + taken % 100).is_ok()) ++taken;
    EXPECT_NEAR(static_cast<double>(taken), 4096, 4);  // 256 MiB
}

}  // namespace
}  // namespace pccl::bootstrap
