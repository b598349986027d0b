// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/messages/catalog.h"

#include <gmock/gmock.h>

#include <string>

#include "tests/cpp/p2p/descriptors.h"

namespace pccl::p2p {
namespace {

using testing::HasSubstr;

TEST(CatalogTest, HasSoManyNamesAndNoMore) {
    Catalog catalog;
    for (std::size_t i = 0; i < Catalog::kMost; ++i)
        ASSERT_TRUE(catalog.publish(std::to_string(i), memory(i)).is_ok());
    const Status full = catalog.publish("one more", memory(1));
    EXPECT_EQ(full.code(), StatusCode::kInvalidArgument) << "a blank";
    EXPECT_EQ(catalog.publish("one-more", memory(1)).code(), StatusCode::kResourceExhausted);
    EXPECT_TRUE(catalog.publish("7", memory(1)).is_ok()) << "in the place of another";
    const Status none = catalog.find("one-more").status();
    EXPECT_LT(none.message().size(), 1024U);
    EXPECT_THAT(none.message(), HasSubstr(", ..."));
    catalog.forget(memory(1));
    EXPECT_FALSE(catalog.find("1").is_ok());
    EXPECT_FALSE(catalog.find("7").is_ok());
    EXPECT_TRUE(catalog.publish("one-more", memory(1)).is_ok());
}

}  // namespace
}  // namespace pccl::p2p
