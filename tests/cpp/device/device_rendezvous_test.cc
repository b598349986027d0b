// SPDX-License-Identifier: Apache-2.0

// Ranks of a group of GPUs meet, or all of them learn the reason of the one that cannot join.
#include "csrc/device/device_rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/device/device_group.h"
#include "tests/cpp/device/group_calls.h"
#include "tests/fakes/device_ranks.h"
#include "tests/fakes/memory_store.h"

namespace pccl::device {
namespace {

using fakes::DeviceRank;
using fakes::FakeCudaDriver;
using fakes::FakeGpus;
using fakes::MemoryStore;
using fakes::run_device_ranks;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(DeviceGroupTest, RanksMeetAndStateWhatTheyHold) {
    run_device_ranks({.size = 4}, [](DeviceRank& member) {
        EXPECT_TRUE(member.group.health().is_ok());
        EXPECT_EQ(member.group.size(), 4);
        EXPECT_GE(member.group.heap_bytes(), sizeof(abi::Heap));
        EXPECT_LE(member.group.heap_bytes(), 256U << 20);
    });
}

/// On a thread for each rank, which makes its group of `options` by itself.
void run_alone(int size,
               const std::function<void(FakeCudaDriver&, DeviceGroupImplOptions options)>& body) {
    const auto gpus = std::make_shared<FakeGpus>();
    const auto store = std::make_shared<MemoryStore>();
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < size; ++rank) {
        threads.emplace_back([&, rank] {
            FakeCudaDriver driver(gpus);
            body(driver,
                 {.rank = rank, .size = size, .store = store, .device = rank, .driver = &driver});
        });
    }
    for (std::thread& thread : threads) thread.join();
}

TEST(DeviceGroupTest, TheArchitectureAndTheWishesOfRankZeroCountForAll) {
    run_alone(2, [](FakeCudaDriver& driver, DeviceGroupImplOptions options) {
        driver.be_of(options.rank == 0 ? 80 : 100);
        options.preferences.copy_engines = options.rank == 0;
        options.algorithms = options.rank == 0 ? "all_reduce=ring" : "";
        const auto group = DeviceGroupImpl::create(options);
        ASSERT_TRUE(group.is_ok()) << group.status().to_string();
        EXPECT_EQ((*group)->architecture(), 80);
        const auto kernel_of = [&](CollectiveKind kind) {
            return (*group)->explain(kind, 32 * kMiB).front().kernel;
        };
        EXPECT_EQ(kernel_of(CollectiveKind::kAllReduce), "program of ring");
        EXPECT_EQ(kernel_of(CollectiveKind::kAllGather), "copy engines");
        EXPECT_EQ(kernel_of(CollectiveKind::kGather), "all_to_all");
    });
}

TEST(DeviceGroupTest, RanksThatPreferOtherLaunchesAreNamed) {
    run_alone(3, [](FakeCudaDriver&, DeviceGroupImplOptions options) {
        options.preferences = {.most_blocks = options.rank == 1 ? 8 : 16,
                               .protocol = kernels::Protocol::kDirect};
        const Status status = DeviceGroupImpl::create(options).status();
        EXPECT_EQ(status.code(), StatusCode::kMismatch);
        EXPECT_THAT(status.message(),
                    HasSubstr("rank 1 requests at most 8 blocks and direct protocol, rank 0 "
                              "at most 16 blocks and direct protocol"));
    });
}

class WhoIsLate : public RendezvousTest, public ::testing::WithParamInterface<Rank> {};

/// The first to come has learnt that another is gone: all blame that one.
TEST_P(WhoIsLate, GetsTheReason) {
    const Rank first = GetParam();
    const Rank lost = (first + 1) % 3;
    const Rank last = (first + 2) % 3;
    std::atomic<bool> has_queried = false;
    come(first, [&, lost] {
        return has_queried.exchange(true) ? Status::peer_lost(lost, "it is gone") : Status::ok();
    });
    EXPECT_EQ(outcome(first).code(), StatusCode::kPeerLost);
    come(last);
    EXPECT_EQ(outcome(last).code(), StatusCode::kPeerLost);
    EXPECT_EQ(outcome(last).peer(), lost);
    EXPECT_EQ(outcome(last).message(), "it is gone");
}

INSTANTIATE_TEST_SUITE_P(Ranks, WhoIsLate, ::testing::Values(0, 1, 2));

TEST(DeviceGroupTest, MoreRanksThanAHeapHasRoomForAreRefused) {
    const auto group = DeviceGroupImpl::create({.rank = 0, .size = abi::kMostDevices + 1});
    EXPECT_EQ(group.status().code(), StatusCode::kUnsupported);
}

TEST(DeviceGroupTest, AllRanksLearnThatOneMustNotReachItsPeers) {
    for (const Status& status : outcomes(3, [](DeviceGroupImplOptions& options, FakeCudaDriver&) {
             if (options.rank == 1) options.peer_access = false;
             if (options.rank == 2) options.host_kernels = false;
         })) {
        EXPECT_EQ(status.code(), StatusCode::kUnsupported);
        EXPECT_THAT(status.message(), HasSubstr("rank 1: PCCL_GPU_PEER_ACCESS=0"));
        EXPECT_THAT(status.message(), HasSubstr("rank 2: PCCL_GPU_HOST_KERNELS=0"));
    }
}

TEST(DeviceGroupTest, AllRanksLearnThatOneCannotMapItsPeersMemory) {
    for (const Status& status :
         outcomes(3, [](DeviceGroupImplOptions& options, FakeCudaDriver& driver) {
             options.host_kernels = false;
             if (options.rank == 2) driver.fail("import_memory", Status::unsupported("no access"));
         }))
        EXPECT_EQ(status.code(), StatusCode::kUnsupported) << status.to_string();
}

TEST(DeviceGroupTest, AllRanksLearnThatOneHasNoMemoryLeft) {
    for (const Status& status :
         outcomes(3, [](DeviceGroupImplOptions& options, FakeCudaDriver& driver) {
             if (options.rank == 1) driver.fail("create", Status::resource_exhausted("it is full"));
         })) {
        EXPECT_EQ(status.code(), StatusCode::kUnsupported);
        EXPECT_THAT(status.message(), StartsWith("rank 1: ")) << "not whom it made fail";
        EXPECT_THAT(status.message(), HasSubstr("it is full"));
    }
}

TEST(DeviceGroupTest, AllRanksLearnThatOneHasNoGpu) {
    for (const Status& status :
         outcomes(2, [](DeviceGroupImplOptions& options, FakeCudaDriver& driver) {
             if (options.rank == 0) driver.fail("use", Status::unavailable("no such device"));
         })) {
        EXPECT_EQ(status.code(), StatusCode::kUnavailable);
        EXPECT_THAT(status.message(), HasSubstr("rank 0: no such device"));
    }
}

TEST(DeviceGroupTest, ARankThatDoesNotComeIsNamed) {
    FakeCudaDriver driver(std::make_shared<FakeGpus>());
    const auto group = DeviceGroupImpl::create({.rank = 0,
                                                .size = 2,
                                                .store = std::make_shared<MemoryStore>(),
                                                .timeout = milliseconds(200),
                                                .driver = &driver});
    EXPECT_EQ(group.status().code(), StatusCode::kTimeout);
    EXPECT_EQ(group.status().peer(), 1);
}

}  // namespace
}  // namespace pccl::device
