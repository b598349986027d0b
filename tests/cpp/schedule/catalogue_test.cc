// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "csrc/schedule/verifier/verified_source.h"
#include "tests/cpp/schedule/star.h"

namespace pccl::schedule {
namespace {

using ::testing::HasSubstr;

TEST(CatalogueTest, NamesAndProgramsAreThereOnce) {
    Catalogue catalogue = *built_in();
    ASSERT_TRUE(catalogue.add(source_of(testing::star(3)).value()).is_ok());
    EXPECT_EQ(catalogue.find("star", CollectiveKind::kAllReduce)->name, "star");
    EXPECT_EQ(catalogue.find("star", CollectiveKind::kReduce), nullptr);
    EXPECT_EQ(catalogue.find("", CollectiveKind::kAllReduce), nullptr);
    const auto refusal = [&](std::string_view name) {
        Schedule other = testing::star(4);
        other.name = name;
        const Status status = catalogue.add(source_of(other).value());
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
        return std::string(status.message());
    };
    EXPECT_THAT(refusal("star"), HasSubstr("of all_reduce already with the name star"));
    EXPECT_THAT(refusal("my,star"), HasSubstr("'my,star' is no name"));
    EXPECT_THAT(refusal(""), HasSubstr("'' is no name"));
}

}  // namespace
}  // namespace pccl::schedule
