// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "tests/cpp/emulated/cases.h"
#include "tests/cpp/emulated/emulated_ranks.h"

namespace pccl::comm {
namespace {

TEST_P(EmulatedTest, SmallOnesInOneLaunch) {
    for (const CollectiveKind kind : {kAllReduce, kAllGather, kReduceScatter}) {
        std::vector<Case> cases;
        for (const std::size_t count : {1, 77, 300})
            cases.push_back({.kind = kind, .type = DataType::kBfloat16, .count = count});
        run_together(GetParam(), cases);
    }
}

}  // namespace
}  // namespace pccl::comm
