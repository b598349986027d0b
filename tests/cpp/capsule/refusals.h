// SPDX-License-Identifier: Apache-2.0

// How capsules are refused.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include <pccl/status.h>

namespace pccl::capsule::testing {

/// Fails the running test unless something is refused, in one line; returns that.
inline std::string one_line_of(const Status& status) {
    EXPECT_FALSE(status.is_ok());
    EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
    return status.message();
}

}  // namespace pccl::capsule::testing
