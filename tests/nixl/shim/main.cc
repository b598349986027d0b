// SPDX-License-Identifier: Apache-2.0

// NIXL's own main() besides adds folders of plugins, which its tests over installed libraries need
// not.
#include <gtest/gtest.h>

#include "common.h"

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    const gtest::LogProblemCounter problems;
    return RUN_ALL_TESTS();
}
