// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "csrc/transport/verbs/hca_filter.h"

namespace pccl::transport::verbs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Returns which of some ports a filter takes.
std::vector<std::string> taken_by(std::string_view text) {
    const auto filter = HcaFilter::parse(text);
    EXPECT_TRUE(filter.is_ok()) << text << ": " << filter.status().to_string();
    std::vector<std::string> taken;
    for (const char* const device : {"mlx5_0", "mlx5_1", "mlx5_10", "rxe0"})
        for (const int port : {1, 2})
            if (filter->takes(device, port))
                taken.push_back(std::string(device) + ":" + std::to_string(port));
    return taken;
}

TEST(HcaFilterTest, WithoutNamesEveryPortIsTaken) {
    for (const char* const text : {"", "=", "^", "^="}) {
        EXPECT_THAT(taken_by(text), testing::SizeIs(8)) << text;
        EXPECT_TRUE(HcaFilter::parse(text)->is_empty()) << text;
    }
    EXPECT_FALSE(HcaFilter::parse("mlx5")->is_empty());
}

TEST(HcaFilterTest, NamesArePrefixes) {
    EXPECT_THAT(taken_by("rxe"), ElementsAre("rxe0:1", "rxe0:2"));
    EXPECT_THAT(taken_by("mlx5_1"), ElementsAre("mlx5_1:1", "mlx5_1:2", "mlx5_10:1", "mlx5_10:2"));
    EXPECT_THAT(taken_by("mlx5_0:2,rxe0:1"), ElementsAre("mlx5_0:2", "rxe0:1"));
    EXPECT_THAT(taken_by("mlx4"), IsEmpty());
}

TEST(HcaFilterTest, AnEqualsSignComparesWholeNames) {
    EXPECT_THAT(taken_by("=mlx5_1"), ElementsAre("mlx5_1:1", "mlx5_1:2"));
    EXPECT_THAT(taken_by("=mlx5_1:2,mlx5_10:1"), ElementsAre("mlx5_1:2", "mlx5_10:1"));
    EXPECT_THAT(taken_by("=mlx5"), IsEmpty());
}

TEST(HcaFilterTest, ACaretExcludes) {
    EXPECT_THAT(taken_by("^mlx5_1"), ElementsAre("mlx5_0:1", "mlx5_0:2", "rxe0:1", "rxe0:2"));
    EXPECT_THAT(taken_by("^mlx5_1,rxe0:2"), ElementsAre("mlx5_0:1", "mlx5_0:2", "rxe0:1"));
    EXPECT_THAT(taken_by("^=mlx5_1,mlx5_0,rxe"),
                ElementsAre("mlx5_10:1", "mlx5_10:2", "rxe0:1", "rxe0:2"));
    EXPECT_THAT(taken_by("^=mlx5_10:1,mlx5_0,mlx5_1,rxe0"), ElementsAre("mlx5_10:2"));
}

TEST(HcaFilterTest, ErrorsNameTheSettingAndTheEntry) {
    for (const char* const text : {",", ":1", "a,,b", "mlx5:", "mlx5:0", "mlx5:256", "mlx5:-1",
                                   "mlx5:x", "mlx5:1x", "mlx5:1:2", "mlx5: 1", "=:1", "^,"}) {
        const auto filter = HcaFilter::parse(text);
        EXPECT_EQ(filter.status().code(), StatusCode::kInvalidArgument) << text;
        EXPECT_THAT(filter.status().message(), HasSubstr("PCCL_IB_HCA")) << text;
    }
    EXPECT_THAT(HcaFilter::parse("mlx5_0,mlx5_1:x").status().message(), HasSubstr("\"mlx5_1:x\""));
    EXPECT_TRUE(HcaFilter::parse("mlx5:255").is_ok());
}

}  // namespace
}  // namespace pccl::transport::verbs
