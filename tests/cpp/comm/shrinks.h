// SPDX-License-Identifier: Apache-2.0

// Groups that shrink, and their sums.
#pragma once

#include <gtest/gtest.h>

#include "tests/cpp/comm/ranks.h"

namespace pccl::comm {

using transport::TransportKind;

class ShrinkTest : public ::testing::TestWithParam<TransportKind> {};

inline float reduced_over(CommunicatorImpl& comm) {
    float value = 1.0F;
    const Block block{reinterpret_cast<std::byte*>(&value), 1};
    const Status status = comm.run({.inputs = {&block, 1}, .outputs = {&block, 1}});
    EXPECT_TRUE(status.is_ok()) << status.to_string();
    return value;
}

}  // namespace pccl::comm
