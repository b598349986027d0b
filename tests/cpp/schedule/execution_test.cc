// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/schedule/verifier/checks.h"
#include "tests/cpp/schedule/faulty_schedules.h"

namespace pccl::schedule {
namespace {

using ::testing::HasSubstr;

TEST(VerifierTest, FindsReadsOfWhatNobodyWrote) {
    Schedule schedule = good_all_reduce();
    schedule.programs[1].scratch_chunks = 1;
    step(schedule, 1, 0).src = {kTmp, 0, 1};
    EXPECT_THAT(fault_of(schedule), HasSubstr("rank 1 lane 0 step 0 (send scratch[0+1] to 0/0): "
                                              "reads scratch[0], which no earlier step writes"));
}

}  // namespace
}  // namespace pccl::schedule
