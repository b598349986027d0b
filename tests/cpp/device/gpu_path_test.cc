// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/gpu_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/cpp/device/group_calls.h"

namespace pccl::device {
namespace {

using kernels::GpuPath;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(GpuPathTest, PeersAreUsedWhereAllReachEachOther) {
    const std::array<UsablePaths, 2> ranks{{{}, {.host = Status::unsupported("no pages")}}};
    const auto chosen = choose_path(ranks);
    ASSERT_TRUE(chosen.is_ok());
    EXPECT_EQ(chosen->path, GpuPath::kPeer);
    EXPECT_THAT(chosen->why, IsEmpty());
}

TEST(GpuPathTest, OneRankWithoutPeerAccessSendsAllThroughTheHost) {
    const std::array<UsablePaths, 3> ranks{{{}, {.peers = Status::unsupported("no bridge")}, {}}};
    const auto chosen = choose_path(ranks);
    ASSERT_TRUE(chosen.is_ok());
    EXPECT_EQ(chosen->path, GpuPath::kHost);
    EXPECT_EQ(chosen->why, "rank 1: no bridge");
}

TEST(GpuPathTest, RanksThatReachEachOtherBothWaysAreLinked) {
    const Status none = Status::unsupported("no bridge");
    const std::array<UsablePaths, 3> ranks{{{.peers = none, .reached = bit_of(0) | bit_of(1)},
                                            {.peers = none, .reached = bit_of(0) | bit_of(2)},
                                            {.peers = none, .reached = bit_of(0)}}};
    const auto chosen = choose_path(ranks);
    ASSERT_TRUE(chosen.is_ok());
    EXPECT_THAT(chosen->linked, ::testing::ElementsAre(bit_of(1), bit_of(0), 0U));
    EXPECT_TRUE(chosen->links_any());
}

TEST(GpuPathTest, BothObstaclesAreNamed) {
    const std::array<UsablePaths, 2> ranks{
        {{.peers = Status::unsupported("no bridge")}, {.host = Status::unsupported("no pages")}}};
    const auto chosen = choose_path(ranks);
    EXPECT_EQ(chosen.status().code(), StatusCode::kUnsupported);
    EXPECT_EQ(chosen.status().message(),
              "rank 0: no bridge; kernels do not use host memory either: rank 1: no pages");
}

/// Expects that groups whose ranks `prepare` changes meet in the host, for a reason with `why`.
void expect_host(const PrepareRank& prepare, const char* why) {
    with_groups(3, prepare, [&](std::size_t, const MadeGroup& group) {
        ASSERT_TRUE(group.is_ok()) << group.status().to_string();
        EXPECT_EQ((*group)->path(), GpuPath::kHost);
        EXPECT_THAT((*group)->why_path(), HasSubstr(why));
    });
}

TEST(GpuPathTest, AGroupWithOneGpuWithoutPeerAccessMeetsInTheHost) {
    expect_host(
        [](const DeviceGroupImplOptions& options, FakeCudaDriver& driver) {
            if (options.rank == 2) driver.be_alone();
        },
        "rank 2: the driver lets its GPU not access that of rank 0");
}

TEST(GpuPathTest, AGroupWithARankThatCannotMapItsPeersMeetsInTheHost) {
    expect_host(
        [](const DeviceGroupImplOptions& options, FakeCudaDriver& driver) {
            if (options.rank == 1) driver.fail("import_memory", Status::unsupported("no access"));
        },
        "rank 1: rank 0's heap: no access");
}

TEST(GpuPathTest, AllRanksLearnThatOneCannotMapHostMemory) {
    const auto prepare = [](DeviceGroupImplOptions& options, FakeCudaDriver& driver) {
        options.peer_access = false;
        if (options.rank == 1) driver.fail("map_file", Status::unsupported("no pages"));
    };
    for (const Status& status : outcomes(2, prepare)) {
        EXPECT_EQ(status.code(), StatusCode::kUnsupported);
        EXPECT_THAT(status.message(), HasSubstr("rank 1: no pages"));
    }
}

TEST(GpuPathTest, AGroupWithoutNvlinksMeetsInTheGpusOverPcie) {
    with_groups(
        3, [](const DeviceGroupImplOptions&, FakeCudaDriver& driver) { driver.have_no_nvlinks(); },
        [&](std::size_t, const MadeGroup& group) {
            ASSERT_TRUE(group.is_ok()) << group.status().to_string();
            EXPECT_EQ((*group)->path(), GpuPath::kPcie);
            EXPECT_THAT((*group)->why_path(),
                        HasSubstr("rank 0: no NVLink leads from its GPU to that of rank 1"));
            const auto launches = (*group)->explain(CollectiveKind::kAllReduce, 1 << 20);
            EXPECT_EQ(launches.front().kernel, "program of two_shot");
            EXPECT_THAT(launches.front().why, HasSubstr("in the GPUs' memory over PCIe"));
        });
}

TEST(GpuPathTest, UsersReadWhereKernelsMeet) {
    const auto gpus = std::make_shared<FakeGpus>();
    FakeCudaDriver driver(gpus);
    EXPECT_EQ(describe_path(driver, paths_by({}, {})), "in the GPUs' memory");
    EXPECT_EQ(describe_path(driver, paths_by(false, {})), "in host memory: PCCL_GPU_PEER_ACCESS=0");
    driver.have_no_nvlinks();
    EXPECT_EQ(describe_path(driver, paths_by({}, {})),
              "in the GPUs' memory over PCIe: GPU 0 reaches GPU 1 over PCIe");
    driver.be_alone();
    EXPECT_EQ(describe_path(driver, paths_by({}, {})),
              "in host memory: GPU 0 does not reach GPU 1");
    EXPECT_EQ(describe_path(driver, paths_by({}, false)),
              "nowhere: GPU 0 does not reach GPU 1; PCCL_GPU_HOST_KERNELS=0");
    driver.fail("map_file", Status::unsupported("no pages"));
    EXPECT_EQ(describe_path(driver, paths_by(true, true)),
              "nowhere: GPU 0 does not reach GPU 1; no pages");
    gpus->count = 0;
    EXPECT_THAT(describe_path(driver, paths_by({}, {})), IsEmpty());
}

}  // namespace
}  // namespace pccl::device
