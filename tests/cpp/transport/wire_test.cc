// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/tcp/wire.h"

#include <gtest/gtest.h>

#include "tests/cpp/transport/socket_purposes.h"

namespace pccl::transport::tcp {
namespace {

TEST(TcpWireTest, PurposesAreChecked) {
    EXPECT_TRUE(SocketPurpose::decode(purpose(3).encode()).is_ok());
    for (const SocketPurpose& wrong :
         {purpose(4), purpose(0, 0), purpose(0, 17), purpose(1'000'000, 16),
          SocketPurpose{.block_bytes = 0}, SocketPurpose{.block_bytes = 1U << 31}})
        EXPECT_FALSE(SocketPurpose::decode(wrong.encode()).is_ok());
}

}  // namespace
}  // namespace pccl::transport::tcp
