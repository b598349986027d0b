// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/nvml/nvml.h"

#include <gmock/gmock.h>

#include "tests/fakes/places.h"

namespace pccl::sys {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(NvmlTest, ReturnsTheFactsOfTheLibrary) {
    const auto nvml = open_nvml(fakes::fake_nvml().c_str());
    ASSERT_TRUE(nvml.is_ok()) << nvml.status().to_string();
    const auto gpus = (*nvml)->gpus();
    ASSERT_TRUE(gpus.is_ok());
    ASSERT_THAT(*gpus, SizeIs(2));
    const NvmlGpu& first = (*gpus)[0];
    EXPECT_EQ(first.bus_id, "0000:1a:00.0");
    EXPECT_EQ(first.sm, 90);
    EXPECT_EQ(first.max_link_generation, 5);
    EXPECT_EQ(first.max_link_width, 16);
    ASSERT_THAT(first.links, SizeIs(3)) << "one of four is down";
    EXPECT_EQ(first.links[0].target, "0000:2b:00.0");
    EXPECT_EQ(first.links[0].end, NvLinkEnd::kGpu);
    EXPECT_THAT(first.links[1].target, IsEmpty());
    EXPECT_EQ(first.links[1].end, NvLinkEnd::kSwitch);
    EXPECT_EQ(first.c2c.count, 2) << "one of three is down";
    EXPECT_EQ(first.c2c.megabytes, 44712);
    EXPECT_EQ(first.fabric.state, NvmlFabric::FabricState::kReady);
    EXPECT_EQ(first.fabric.cluster, "ab000000000000000000000000000001");
    EXPECT_EQ(first.fabric.clique, 7U);
    EXPECT_THAT(first.cannot_read, IsEmpty());
}

TEST(NvmlTest, LeavesUnknownAttributesEmpty) {
    const NvmlGpu second = (*open_nvml(fakes::fake_nvml().c_str()))->gpus()->at(1);
    EXPECT_THAT(second.links, IsEmpty());
    EXPECT_EQ(second.c2c.count, 0);
    EXPECT_EQ(second.fabric.state, NvmlFabric::FabricState::kNone);
    EXPECT_THAT(second.cannot_read, ElementsAre(0));
}

TEST(NvmlTest, NamesTheLibraryThatIsMissing) {
    const auto nvml = open_nvml("libnvidia-ml-of-nobody.so.1");
    EXPECT_EQ(nvml.status().code(), StatusCode::kUnavailable);
    EXPECT_THAT(nvml.status().message(), HasSubstr("libnvidia-ml-of-nobody.so.1"));
}

}  // namespace
}  // namespace pccl::sys
