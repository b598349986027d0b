// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/gpu_sharing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "csrc/abi/device_team.h"

namespace pccl::device {
namespace {

using ::testing::HasSubstr;

GpuPlacement on_gpu(int number, bool has_mps = false) {
    return {.gpu = {static_cast<std::byte>(number)}, .has_mps = has_mps, .multiprocessors = 132};
}

TEST(GpuSharingTest, GpusOfTheirOwnAreFine) {
    EXPECT_TRUE(check_placements(std::vector{on_gpu(0), on_gpu(1), on_gpu(2)}).is_ok());
}

TEST(GpuSharingTest, RanksThatAreTimeSlicedAreNamed) {
    const Status status = check_placements(std::vector{on_gpu(0), on_gpu(1), on_gpu(2), on_gpu(1)});
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_THAT(status.message(), HasSubstr("ranks 1 and 3 share a GPU without MPS"));
    EXPECT_THAT(status.message(), HasSubstr("nvidia-cuda-mps-control"));
    EXPECT_THAT(status.message(), HasSubstr("PCCL_GPU_PEER_ACCESS=1"));
}

TEST(GpuSharingTest, UnderMpsKernelsRunSideBySide) {
    EXPECT_TRUE(check_placements(std::vector{on_gpu(0, true), on_gpu(0, true)}).is_ok());
    EXPECT_EQ(check_placements(std::vector{on_gpu(0, true), on_gpu(0, false)}).code(),
              StatusCode::kUnsupported)
        << "one of them is no client of MPS";
}

TEST(GpuSharingTest, ARankMayAllowTimeSlicing) {
    std::vector placements{on_gpu(0), on_gpu(0)};
    placements[1].allows_time_slicing = true;
    EXPECT_TRUE(check_placements(placements).is_ok());
}

/// Three ranks with 128 blocks each on the 132 multiprocessors of an H200 waited for each other.
TEST(GpuSharingTest, TheBlocksOfAllThatShareAGpuFitOnIt) {
    EXPECT_EQ(resident_blocks(std::vector{on_gpu(0), on_gpu(1)}), pccl::abi::kMostBlocks);
    EXPECT_EQ(resident_blocks(std::vector(2, on_gpu(0, true))), 66);
    EXPECT_EQ(resident_blocks(std::vector(3, on_gpu(0, true))), 44);
    EXPECT_EQ(resident_blocks(std::vector{on_gpu(0), on_gpu(1), on_gpu(1), on_gpu(1)}), 44)
        << "block b of a rank waits for block b of its peers";
    EXPECT_EQ(resident_blocks(std::vector(200, on_gpu(0, true))), 1);
}

TEST(GpuSharingTest, AGpuMayHaveFewMultiprocessors) {
    std::vector placements(2, on_gpu(0, true));
    placements[1].multiprocessors = placements[0].multiprocessors = 16;  // a part of a GPU (MIG)
    EXPECT_EQ(resident_blocks(placements), 8);
}

}  // namespace
}  // namespace pccl::device
