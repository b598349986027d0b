// SPDX-License-Identifier: Apache-2.0

// Ranks whose GPUs are shared with other ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/device/device_group.h"
#include "tests/cpp/device/group_calls.h"

namespace pccl::device {
namespace {

using fakes::FakeCudaDriver;
using ::testing::HasSubstr;

TEST(DeviceGroupTest, AllRanksLearnThatTwoAreTimeSlicedOnAGpu) {
    for (const Status& status : outcomes(3, [](DeviceGroupImplOptions& options, FakeCudaDriver&) {
             if (options.rank == 2) options.device = 0;
         })) {
        EXPECT_EQ(status.code(), StatusCode::kUnsupported);
        EXPECT_THAT(status.message(), HasSubstr("ranks 0 and 2 share a GPU without MPS"));
    }
}

TEST(DeviceGroupTest, RanksShareAGpuUnderMpsOrWhereOneWantsThat) {
    for (const bool has_mps : {true, false})
        for (const Status& status :
             outcomes(3, [&](DeviceGroupImplOptions& options, FakeCudaDriver& driver) {
                 if (options.rank == 2) options.device = 0;
                 driver.run_side_by_side(has_mps);
                 if (!has_mps && options.rank == 1) options.peer_access = true;
             }))
            EXPECT_TRUE(status.is_ok()) << status.to_string();
}

}  // namespace
}  // namespace pccl::device
