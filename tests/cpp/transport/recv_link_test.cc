// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/tcp/recv_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/transport/transport.h"
#include "tests/cpp/transport/stripes.h"

namespace pccl::transport::tcp {
namespace {

using testing::HasSubstr;

TEST_F(StripesTest, AReceiverFindsThatOneSocketHasDied) {
    const auto link = receiver(2);
    const auto bytes = stamped(kBlock, 6);
    put(0, 0, bytes);
    far_[1].reset();
    EXPECT_EQ(take(*link, kBlock), bytes) << "what had arrived";
    const Status fault = fault_of(*link);
    EXPECT_EQ(fault.code(), StatusCode::kPeerLost) << fault.to_string();
    EXPECT_EQ(fault.peer(), 3);
    EXPECT_THAT(fault.message(), HasSubstr("rank 3 at its address"));
}

}  // namespace
}  // namespace pccl::transport::tcp
