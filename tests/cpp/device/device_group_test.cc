// SPDX-License-Identifier: Apache-2.0

// Groups of GPUs on a driver in host memory: how they come about, what they refuse, how they end.
// What kernels compute is tested in tests/cpp/emulated and tests/gpu.
#include "csrc/device/device_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "tests/cpp/device/group_calls.h"
#include "tests/fakes/device_ranks.h"

namespace pccl::device {
namespace {

using fakes::DeviceRank;
using fakes::FakeCudaDriver;
using fakes::FakeGpus;
using fakes::run_device_ranks;
using ::testing::HasSubstr;

TEST(DeviceGroupTest, OneRankCopies) {
    run_device_ranks({.size = 1}, [](DeviceRank& member) {
        const std::array<float, 3> from{1, 2, 3};
        std::array<float, 3> to{};
        const Block input = block_of(from);
        const Block output = block_of(to);
        const Collective gather{
            .kind = CollectiveKind::kAllGather, .inputs = {&input, 1}, .outputs = {&output, 1}};
        EXPECT_TRUE(member.group.launch(gather, nullptr).is_ok());
        EXPECT_EQ(to, from);
    });
}

TEST(DeviceGroupTest, OneRankNeedsNoStoreToFail) {
    FakeCudaDriver driver(std::make_shared<FakeGpus>());
    driver.fail("create", Status::resource_exhausted("it is full"));
    const auto group = DeviceGroupImpl::create({.driver = &driver});
    EXPECT_EQ(group.status().code(), StatusCode::kUnsupported);
    EXPECT_THAT(group.status().message(), HasSubstr("it is full"));
}

TEST(DeviceGroupTest, AdoptsThreadsThatWatchItsGpu) {
    run_device_ranks({.size = 1}, [](DeviceRank& member) {
        EXPECT_TRUE(member.group.adopt_thread().is_ok());
        member.driver.fail("ignore_captures", Status::internal("no"));
        EXPECT_FALSE(member.group.adopt_thread().is_ok());
    });
}

TEST(DeviceGroupTest, WithoutAGpuTheErrorNamesTheShortage) {
    if (sys::cuda::process_driver().is_ok()) GTEST_SKIP() << "this machine has a GPU";
    const Status status = DeviceGroupImpl::create({}).status();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), testing::AnyOf(HasSubstr("this build of pccl has no CUDA"),
                                                 HasSubstr("no NVIDIA driver on this machine")));
}

}  // namespace
}  // namespace pccl::device
