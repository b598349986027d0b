#include "csrc/device/gpu_sharing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "csrc/abi/device_team.h"

namespace pccl::device {
namespace {

using ::testing::HasSubstr;

GpuSeat on_gpu(int number, bool has_mps = false) {
    return {.gpu = {static_cast<std::byte>(number)}, .has_mps = has_mps, .multiprocessors = 132};
}

TEST(GpuSharingTest, GpusOfTheirOwnAreFine) {
    EXPECT_TRUE(check_seats(std::vector{on_gpu(0), on_gpu(1), on_gpu(2)}).is_ok());
}

TEST(GpuSharingTest, RanksThatTakeTurnsAreNamed) {
    const Status status = check_seats(std::vector{on_gpu(0), on_gpu(1), on_gpu(2), on_gpu(1)});
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_THAT(status.message(), HasSubstr("ranks 1 and 3 share a GPU without MPS"));
    EXPECT_THAT(status.message(), HasSubstr("nvidia-cuda-mps-control"));
    EXPECT_THAT(status.message(), HasSubstr("PCCL_GPU_PEER_ACCESS=1"));
}

TEST(GpuSharingTest, UnderMpsKernelsRunSideBySide) {
    EXPECT_TRUE(check_seats(std::vector{on_gpu(0, true), on_gpu(0, true)}).is_ok());
    EXPECT_EQ(check_seats(std::vector{on_gpu(0, true), on_gpu(0, false)}).code(),
              StatusCode::kUnsupported)
        << "one of them is no client of MPS";
}

TEST(GpuSharingTest, ARankMayWantToTakeTurns) {
    std::vector seats{on_gpu(0), on_gpu(0)};
    seats[1].takes_turns = true;
    EXPECT_TRUE(check_seats(seats).is_ok());
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
    std::vector seats(2, on_gpu(0, true));
    seats[1].multiprocessors = seats[0].multiprocessors = 16;  // a part of a GPU (MIG)
    EXPECT_EQ(resident_blocks(seats), 8);
}

}  // namespace
}  // namespace pccl::device
