#include "csrc/device/gpu_sharing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace pccl::device {
namespace {

using ::testing::HasSubstr;

GpuSeat on_gpu(int number, bool has_mps = false) {
    return {.gpu = {static_cast<std::byte>(number)}, .has_mps = has_mps};
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

}  // namespace
}  // namespace pccl::device
