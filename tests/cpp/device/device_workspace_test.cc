// SPDX-License-Identifier: Apache-2.0

// Workspaces on a driver in host memory: all ranks have one, or none does and all know why.
#include "csrc/device/device_workspace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <bit>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "csrc/base/ids.h"
#include "tests/fakes/fake_cuda.h"
#include "tests/fakes/memory_store.h"

namespace pccl::device {
namespace {

using fakes::FakeCudaDriver;
using fakes::FakeGpus;
using fakes::MemoryStore;
using ::testing::HasSubstr;

using Made = Result<std::unique_ptr<DeviceWorkspace>>;

struct Member {
    Rank rank = 0;
    FakeCudaDriver& driver;
    std::barrier<>& together;
    std::function<Made(std::size_t bytes)> make{};
};

void run(int size, const std::function<void(Member&)>& body) {
    const auto gpus = std::make_shared<FakeGpus>();
#if defined(__SANITIZE_THREAD__)
    gpus->has_one_address_space = true;
#endif
    const auto store = std::make_shared<MemoryStore>();
    std::barrier together(size);
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < size; ++rank) {
        threads.emplace_back([&, rank] {
            FakeCudaDriver driver(gpus);
            Member member{.rank = rank, .driver = driver, .together = together};
            member.make = [&](std::size_t bytes) {
                return DeviceWorkspace::create({.rank = rank,
                                                .size = size,
                                                .store = store,
                                                .device = rank,
                                                .bytes = bytes,
                                                .timeout = std::chrono::seconds(20),
                                                .driver = &driver});
            };
            body(member);
            together.arrive_and_wait();
            EXPECT_EQ(driver.open_mappings(), 0);
        });
    }
    for (std::thread& thread : threads) thread.join();
}

std::uint64_t& word_at(const DeviceWorkspace& workspace, Rank rank, std::size_t index) {
    const auto address = workspace.address(rank).value() + index * sizeof(std::uint64_t);
    return *std::bit_cast<std::uint64_t*>(address);
}

TEST(DeviceWorkspaceTest, IsZeroAndEveryRankReachesEveryPart) {
    constexpr std::size_t kWords = 4 * kMiB;  // more than heaps of groups have
    run(3, [](Member& member) {
        const Made made = member.make(kWords * sizeof(std::uint64_t));
        ASSERT_TRUE(made.is_ok()) << made.status().to_string();
        const DeviceWorkspace& workspace = **made;
        EXPECT_EQ(workspace.bytes(), kWords * sizeof(std::uint64_t));
        for (Rank peer = 0; peer < 3; ++peer) EXPECT_EQ(word_at(workspace, peer, kWords - 1), 0U);
        member.together.arrive_and_wait();
        const auto self = static_cast<std::size_t>(member.rank);
        for (Rank peer = 0; peer < 3; ++peer)
            word_at(workspace, peer, self) = 10 * self + static_cast<std::size_t>(peer);
        member.together.arrive_and_wait();
        for (std::size_t from = 0; from < 3; ++from)
            EXPECT_EQ(word_at(workspace, member.rank, from), 10 * from + self);
        EXPECT_EQ(workspace.address(3).status().code(), StatusCode::kInvalidArgument);
        member.together.arrive_and_wait();
    });
}

TEST(DeviceWorkspaceTest, OfOneRankNeedsNoStore) {
    FakeCudaDriver driver(std::make_shared<FakeGpus>());
    const Made made = DeviceWorkspace::create({.bytes = 8, .driver = &driver});
    ASSERT_TRUE(made.is_ok()) << made.status().to_string();
    word_at(**made, 0, 0) = 1;
}

TEST(DeviceWorkspaceTest, NobodyHasOneWhereOneRankHasNoMemory) {
    run(3, [](Member& member) {
        if (member.rank == 1) member.driver.fail("create", Status::resource_exhausted("no room"));
        const Made made = member.make(4096);
        ASSERT_FALSE(made.is_ok());
        EXPECT_THAT(made.status().message(), HasSubstr("no room"));
    });
}

TEST(DeviceWorkspaceTest, WrongOptionsAreRefused) {
    FakeCudaDriver driver(std::make_shared<FakeGpus>());
    const auto code = [&](DeviceWorkspaceOptions options) {
        options.driver = &driver;
        return DeviceWorkspace::create(options).status().code();
    };
    EXPECT_EQ(code({.bytes = 0}), StatusCode::kInvalidArgument);
    EXPECT_EQ(code({.rank = 1, .bytes = 8}), StatusCode::kInvalidArgument);
    EXPECT_EQ(code({.size = 9, .bytes = 8}), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace pccl::device
