// Groups of GPUs on a driver in host memory: how they come about, what they refuse, how they end.
// What kernels compute is tested in tests/gpu.

#include "csrc/comm/device/device_group.h"

#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <chrono>
#include <thread>

#include "tests/cpp/comm/ranks.h"
#include "tests/fakes/fake_cuda.h"

namespace pccl::comm {
namespace {

using fakes::FakeCudaDriver;
using fakes::FakeGpus;
using std::chrono::milliseconds;

struct Member {
    DeviceGroup& group;
    FakeCudaDriver& driver;
    std::barrier<>& together;
};

void run(int size, const std::function<void(Member&)>& body) {
    const auto gpus = std::make_shared<FakeGpus>();
    const auto store = std::make_shared<MemoryStore>();
    std::barrier together(size);
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < size; ++rank) {
        threads.emplace_back([&, rank] {
            FakeCudaDriver driver(gpus);
            auto group = DeviceGroup::create({.rank = rank,
                                              .size = size,
                                              .store = store,
                                              .device = rank,
                                              .timeout = milliseconds(20'000),
                                              .driver = &driver});
            ASSERT_TRUE(group.is_ok()) << group.status().to_string();
            Member member{**group, driver, together};
            body(member);
            together.arrive_and_wait();
            group->reset();
            EXPECT_EQ(driver.open_mappings(), 0);
        });
    }
    for (std::thread& thread : threads) thread.join();
}

TEST(DeviceGroupTest, RanksMeetAndStateWhatTheyHold) {
    run(4, [](Member& member) {
        EXPECT_TRUE(member.group.health().is_ok());
        EXPECT_EQ(member.group.size(), 4);
        EXPECT_GE(member.group.heap_bytes(), sizeof(abi::Heap));
        EXPECT_LE(member.group.heap_bytes(), 256U << 20);
    });
}

TEST(DeviceGroupTest, OneRankCopies) {
    run(1, [](Member& member) {
        const std::array<float, 3> from{1, 2, 3};
        std::array<float, 3> to{};
        const DeviceCollective gather{.kind = CollectiveKind::kAllGather,
                                      .input = from.data(),
                                      .output = to.data(),
                                      .count = 3};
        EXPECT_TRUE(member.group.launch(gather, nullptr).is_ok());
        EXPECT_EQ(to, from);
    });
}

TEST(DeviceGroupTest, WrongCallsAreRefusedBeforeAnythingIsLaunched) {
    run(2, [](Member& member) {
        std::array<float, 2> x{};
        const DeviceCollective right{.input = x.data(), .output = x.data(), .count = 2};
        const auto code_of = [&](const DeviceCollective& collective) {
            return member.group.launch(collective, nullptr).code();
        };
        DeviceCollective wrong = right;
        wrong.op = ReduceOp::kBand;
        EXPECT_EQ(code_of(wrong), StatusCode::kUnsupported);
        wrong = right;
        wrong.output = nullptr;
        EXPECT_EQ(code_of(wrong), StatusCode::kInvalidArgument);
        wrong = right;
        wrong.root = 2;
        EXPECT_EQ(code_of(wrong), StatusCode::kInvalidArgument);
        wrong = right;
        wrong.kind = CollectiveKind::kGather;
        EXPECT_EQ(code_of(wrong), StatusCode::kUnsupported);
        wrong = right;
        wrong.plan = kernels::Plan{.blocks = 1000};
        EXPECT_EQ(code_of(wrong), StatusCode::kInvalidArgument);
        wrong = right;
        wrong.count = 0;
        EXPECT_EQ(code_of(wrong), StatusCode::kOk);
    });
}

TEST(DeviceGroupTest, AfterAnAbortNothingIsLaunched) {
    run(2, [](Member& member) {
        std::array<float, 2> x{};
        member.group.abort();
        const DeviceCollective call{.input = x.data(), .output = x.data(), .count = 2};
        EXPECT_EQ(member.group.launch(call, nullptr).code(), StatusCode::kAborted);
    });
}

TEST(DeviceGroupTest, MoreRanksThanAHeapHasRoomForAreRefused) {
    const auto group = DeviceGroup::create({.rank = 0, .size = abi::kMostDevices + 1});
    EXPECT_EQ(group.status().code(), StatusCode::kUnsupported);
}

TEST(DeviceGroupTest, ARankThatDoesNotComeIsNamed) {
    FakeCudaDriver driver(std::make_shared<FakeGpus>());
    const auto group = DeviceGroup::create({.rank = 0,
                                            .size = 2,
                                            .store = std::make_shared<MemoryStore>(),
                                            .timeout = milliseconds(200),
                                            .driver = &driver});
    EXPECT_EQ(group.status().code(), StatusCode::kTimeout);
    EXPECT_EQ(group.status().peer(), 1);
}

}  // namespace
}  // namespace pccl::comm
