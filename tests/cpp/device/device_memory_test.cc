// SPDX-License-Identifier: Apache-2.0

// Buffers on a GPU, on a driver whose memory is the host's.
#include "csrc/device/device_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "tests/fakes/fake_cuda.h"

namespace pccl::device {
namespace {

class DeviceMemoryTest : public testing::Test {
   protected:
    fakes::FakeCudaDriver driver_{std::make_shared<fakes::FakeGpus>()};
};

TEST_F(DeviceMemoryTest, IsZeroAtFirstAndKeepsWhatIsWritten) {
    const auto memory = DeviceMemoryImpl::allocate(0, 64, &driver_);
    ASSERT_TRUE(memory.is_ok()) << memory.status().to_string();
    std::vector<std::byte> seen(64, std::byte{1});
    ASSERT_TRUE((*memory)->read(seen).is_ok());
    EXPECT_EQ(seen, std::vector<std::byte>(64));
    const std::array written{std::byte{7}, std::byte{8}};
    ASSERT_TRUE((*memory)->write(written).is_ok());
    ASSERT_TRUE((*memory)->read(seen).is_ok());
    EXPECT_EQ(seen[0], std::byte{7});
    EXPECT_EQ(seen[1], std::byte{8});
    EXPECT_EQ(seen[2], std::byte{0});
}

TEST_F(DeviceMemoryTest, TakesNoMoreThanItHas) {
    const auto memory = DeviceMemoryImpl::allocate(0, 16, &driver_);
    ASSERT_TRUE(memory.is_ok());
    std::vector<std::byte> longer(17);
    for (const Status& status : {(*memory)->write(longer), (*memory)->read(longer)}) {
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
        EXPECT_EQ(status.message(), "17 bytes do not fit 16 bytes of GPU memory");
    }
}

TEST_F(DeviceMemoryTest, PassesOnWhatTheDriverLacks) {
    driver_.fail("allocate", Status(StatusCode::kResourceExhausted, "out of memory"));
    EXPECT_EQ(DeviceMemoryImpl::allocate(0, 16, &driver_).status().code(),
              StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace pccl::device
