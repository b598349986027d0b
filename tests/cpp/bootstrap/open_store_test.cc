// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pccl/store.h>
#include "tests/cpp/bootstrap/store_kinds.h"

namespace pccl::bootstrap {
namespace {

using ::testing::HasSubstr;

TEST(OpenStoreTest, ErrorsOfMalformedUrlsNameTheRightForm) {
    for (const char* const url : {"", "tcp://", "tcp://host", "tcp://:29500", "tcp://host:0",
                                  "tcp://host:65536", "tcp://host:12x", "tcp://fd00::1:29500",
                                  "http://host:1", "file://relative", "127.0.0.1:29500"}) {
        const Status status = open_store(url, 0, 1, shortly()).status();
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << url;
        EXPECT_THAT(status.message(), HasSubstr("write ")) << url;
    }
    EXPECT_EQ(open_store("tcp://127.0.0.1:29500", 2, 2, shortly()).status().code(),
              StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pccl::bootstrap
