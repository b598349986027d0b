// SPDX-License-Identifier: Apache-2.0

// Groups of GPUs on a driver in host memory: how they come about, what they refuse, how they end.
// What kernels compute is tested in tests/cpp/emulated and tests/gpu.

#include "csrc/device/device_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/schedule/generators/generators.h"
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

Block block_of(std::span<const float> values) {
    return {std::bit_cast<std::byte*>(values.data()), values.size()};
}

/// On a thread for each rank, which makes its group of `options` by itself.
void run_alone(int size,
               const std::function<void(FakeCudaDriver&, DeviceGroupOptions options)>& body) {
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
    run_alone(2, [](FakeCudaDriver& driver, DeviceGroupOptions options) {
        driver.be_of(options.rank == 0 ? 80 : 100);
        options.preferences.copy_engines = options.rank == 0;
        options.algorithms = options.rank == 0 ? "all_reduce=ring" : "";
        const auto group = DeviceGroup::create(options);
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
    run_alone(3, [](FakeCudaDriver&, DeviceGroupOptions options) {
        options.preferences = {.most_blocks = options.rank == 1 ? 8 : 16,
                               .protocol = kernels::Protocol::kDirect};
        const Status status = DeviceGroup::create(options).status();
        EXPECT_EQ(status.code(), StatusCode::kMismatch);
        EXPECT_THAT(status.message(),
                    HasSubstr("rank 1 asks for at most 8 blocks and direct protocol, rank 0 "
                              "for at most 16 blocks and direct protocol"));
    });
}

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
    const auto group = DeviceGroup::create({.driver = &driver});
    EXPECT_EQ(group.status().code(), StatusCode::kUnsupported);
    EXPECT_THAT(group.status().message(), HasSubstr("it is full"));
}

TEST(DeviceGroupTest, WrongCallsAreRefusedBeforeAnythingIsLaunched) {
    run_device_ranks({.size = 2}, [](DeviceRank& member) {
        std::array<float, 2> x{};
        Block block = block_of(x);
        const Collective right{.inputs = {&block, 1}, .outputs = {&block, 1}};
        const auto code_of = [&](const Collective& collective, const DeviceLaunch& wanted = {}) {
            return member.group.launch(collective, nullptr, wanted).code();
        };
        Collective wrong = right;
        wrong.op = ReduceOp::kBand;
        EXPECT_EQ(code_of(wrong), StatusCode::kUnsupported);
        wrong = right;
        wrong.kind = CollectiveKind::kBroadcast;
        wrong.root = 2;
        EXPECT_EQ(code_of(wrong), StatusCode::kInvalidArgument);
        wrong = right;
        wrong.kind = CollectiveKind::kAllToAll;
        EXPECT_EQ(code_of(wrong), StatusCode::kInvalidArgument);
        EXPECT_EQ(code_of(right, {.plan = kernels::Plan{.blocks = 1000}}),
                  StatusCode::kInvalidArgument);
        block.data = nullptr;
        EXPECT_EQ(code_of(right), StatusCode::kInvalidArgument);
        block.count = 0;
        EXPECT_EQ(code_of(right), StatusCode::kOk);
    });
}

TEST(DeviceGroupTest, MessagesToNobodyAreRefused) {
    run_device_ranks({.size = 2}, [](DeviceRank& member) {
        std::array<float, 2> x{};
        const DeviceMessage wrong{.peer = 2, .data = block_of(x).data, .bytes = 8};
        EXPECT_EQ(member.group.exchange({.sends = {&wrong, 1}}, nullptr).code(),
                  StatusCode::kInvalidArgument);
        const DeviceMessage empty{.peer = 1, .data = nullptr, .bytes = 0};
        EXPECT_TRUE(member.group.exchange({.receives = {&empty, 1}}, nullptr).is_ok());
    });
}

TEST(DeviceGroupTest, AfterAnAbortNothingIsLaunched) {
    run_device_ranks({.size = 2}, [](DeviceRank& member) {
        std::array<float, 2> x{};
        const bool is_first = member.group.rank() == 0;
        if (is_first) member.group.abort();
        while (member.group.health().is_ok()) std::this_thread::yield();
        const StatusCode code = is_first ? StatusCode::kAborted : StatusCode::kPeerLost;
        const Block block = block_of(x);
        const Collective call{.inputs = {&block, 1}, .outputs = {&block, 1}};
        EXPECT_EQ(member.group.launch(call, nullptr).code(), code);
        const DeviceMessage message{.peer = 1, .data = block.data, .bytes = 8};
        EXPECT_EQ(member.group.exchange({.sends = {&message, 1}}, nullptr).code(), code);
        EXPECT_FALSE(member.group.has_given_up());
    });
}

/// Its peers may wait for what it has not launched.
TEST(DeviceGroupTest, ALaunchThatFailsOnOneRankEndsTheGroupOnAll) {
    constexpr std::size_t kCount = 1 << 20;
    run_device_ranks({.size = 3}, [](DeviceRank& member) {
        const auto base = member.driver.allocate(kCount * sizeof(float));
        member.driver.make_unshareable(base);
        member.driver.fail("allocate", Status::resource_exhausted("no more GPU memory"));
        if (member.group.rank() == 1) {
            const Block block{std::bit_cast<std::byte*>(base), kCount};
            const Collective call{.inputs = {&block, 1}, .outputs = {&block, 1}};
            for (int time = 0; time < 2; ++time)
                EXPECT_EQ(member.group.launch(call, nullptr).code(),
                          StatusCode::kResourceExhausted);
            return;
        }
        while (member.group.health().is_ok()) std::this_thread::yield();
        EXPECT_EQ(member.group.health().code(), StatusCode::kPeerLost);
        EXPECT_EQ(member.group.health().peer(), 1);
        EXPECT_THAT(member.group.health().message(), HasSubstr("no more GPU memory"));
    });
}

/// Threads that make groups of three; those that come at all.
class RendezvousTest : public ::testing::Test {
   public:
    void come(Rank rank, std::function<Status()> interrupted = Status::ok) {
        ranks_.emplace_back([this, rank, interrupted = std::move(interrupted)] {
            FakeCudaDriver driver(gpus_);
            made_[static_cast<std::size_t>(rank)] =
                create_interruptibly({.rank = rank,
                                      .size = 3,
                                      .store = store_,
                                      .device = rank,
                                      .timeout = std::chrono::minutes(10),
                                      .driver = &driver},
                                     interrupted)
                    .status();
        });
    }
    const Status& outcome(Rank rank) {
        for (std::thread& thread : ranks_)
            if (thread.joinable()) thread.join();
        return made_[static_cast<std::size_t>(rank)];
    }

   private:
    const std::shared_ptr<FakeGpus> gpus_ = std::make_shared<FakeGpus>();
    const std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
    std::array<Status, 3> made_;
    std::vector<std::thread> ranks_;
};

TEST_F(RendezvousTest, WhoIsInterruptedTellsThoseThatWait) {
    come(0);
    std::atomic<bool> is_tired = false;
    come(1, [&] { return is_tired ? Status::aborted("Ctrl-C") : Status::ok(); });
    std::this_thread::sleep_for(milliseconds(300));  // for rank 2, which does not come
    is_tired = true;
    EXPECT_EQ(outcome(1).code(), StatusCode::kAborted);
    EXPECT_EQ(outcome(1).message(), "Ctrl-C");
    EXPECT_EQ(outcome(0).code(), StatusCode::kPeerLost);
    EXPECT_EQ(outcome(0).peer(), 1);
    EXPECT_EQ(outcome(0).message(), "rank 1: Ctrl-C");
}

class WhoIsLate : public RendezvousTest, public ::testing::WithParamInterface<Rank> {};

/// The first to come has learnt that another is gone: all blame that one.
TEST_P(WhoIsLate, GetsTheReason) {
    const Rank first = GetParam();
    const Rank lost = (first + 1) % 3;
    const Rank last = (first + 2) % 3;
    std::atomic<bool> has_asked = false;
    come(first, [&, lost] {
        return has_asked.exchange(true) ? Status::peer_lost(lost, "it is gone") : Status::ok();
    });
    EXPECT_EQ(outcome(first).code(), StatusCode::kPeerLost);
    come(last);
    EXPECT_EQ(outcome(last).code(), StatusCode::kPeerLost);
    EXPECT_EQ(outcome(last).peer(), lost);
    EXPECT_EQ(outcome(last).message(), "it is gone");
}

INSTANTIATE_TEST_SUITE_P(Ranks, WhoIsLate, ::testing::Values(0, 1, 2));

TEST(DeviceGroupTest, KnowsWhatIsCaptured) {
    run_device_ranks({.size = 1}, [](DeviceRank& member) {
        EXPECT_FALSE(member.group.is_captured(nullptr));
        member.driver.capture(true);
        EXPECT_TRUE(member.group.is_captured(nullptr));
        member.driver.capture(false);
        member.driver.fail("capture_of", Status::internal("another stream is captured"));
        EXPECT_TRUE(member.group.is_captured(nullptr));
    });
}

TEST(DeviceGroupTest, TheFirstScheduleIsNotCaptured) {
    run_device_ranks({.size = 2}, [](DeviceRank& member) {
        std::array<float, 2> x{};
        const Block block = block_of(x);
        const Collective call{.inputs = {&block, 1}, .outputs = {&block, 1}};
        member.driver.capture(true);
        const Status status = member.group.launch(
            call, nullptr, {.schedule = schedule::built_in("ring", call.kind).value()});
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
        EXPECT_THAT(status.message(), HasSubstr("call it once before"));
    });
}

TEST(DeviceGroupTest, AdoptsThreadsThatWatchItsGpu) {
    run_device_ranks({.size = 1}, [](DeviceRank& member) {
        EXPECT_TRUE(member.group.adopt_thread().is_ok());
        member.driver.fail("ignore_captures", Status::internal("no"));
        EXPECT_FALSE(member.group.adopt_thread().is_ok());
    });
}

TEST(DeviceGroupTest, WithoutAGpuTheErrorSaysWhatIsMissing) {
    if (sys::cuda::process_driver().is_ok()) GTEST_SKIP() << "this machine has a GPU";
    const Status status = DeviceGroup::create({}).status();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), testing::AnyOf(HasSubstr("this build of pccl has no CUDA"),
                                                 HasSubstr("no NVIDIA driver on this machine")));
}

TEST(TwoPhasesTest, PartsCoverATensorOnceInOrder) {
    for (const int ranks : {3, 4, 7, 8})
        for (const std::size_t count : {std::size_t{100} << 20, (std::size_t{100} << 20) + 13}) {
            std::byte* const base = std::bit_cast<std::byte*>(std::size_t{1} << 40);
            const Block block{base, count};
            const Collective whole{.inputs = {&block, 1}, .outputs = {&block, 1}};
            const auto phases = two_phases(whole, {}, ranks);
            ASSERT_TRUE(phases.has_value());
            std::byte* at = base;
            std::size_t covered = 0;
            for (const Block& part : phases->inputs) {
                EXPECT_EQ(part.data, at);
                EXPECT_EQ(std::bit_cast<std::uintptr_t>(part.data) % 128, 0U);
                at += part.count * sizeof(float);
                covered += part.count;
            }
            EXPECT_EQ(covered, count);
            for (Rank rank = 0; rank < ranks; ++rank) {
                EXPECT_TRUE(check_shape(phases->reduce_scatter(whole, rank), rank, ranks).is_ok());
                EXPECT_TRUE(check_shape(phases->all_gather(whole, rank), rank, ranks).is_ok());
            }
        }
    const Block small{std::bit_cast<std::byte*>(std::size_t{1} << 40), 1000};
    EXPECT_FALSE(two_phases({.inputs = {&small, 1}, .outputs = {&small, 1}}, {}, 4).has_value());
}

TEST(DeviceGroupTest, MoreRanksThanAHeapHasRoomForAreRefused) {
    const auto group = DeviceGroup::create({.rank = 0, .size = abi::kMostDevices + 1});
    EXPECT_EQ(group.status().code(), StatusCode::kUnsupported);
}

/// What create() says on each of `size` ranks, whose options and drivers `prepare` changes.
std::vector<Status> outcomes(
    int size, const std::function<void(DeviceGroupOptions&, FakeCudaDriver&)>& prepare) {
    const auto gpus = std::make_shared<FakeGpus>();
    const auto store = std::make_shared<MemoryStore>();
    std::vector<Status> found(static_cast<std::size_t>(size));
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < size; ++rank) {
        threads.emplace_back([&, rank] {
            FakeCudaDriver driver(gpus);
            DeviceGroupOptions options{.rank = rank,
                                       .size = size,
                                       .store = store,
                                       .device = rank,
                                       .timeout = milliseconds(20'000),
                                       .driver = &driver};
            prepare(options, driver);
            found[static_cast<std::size_t>(rank)] = DeviceGroup::create(options).status();
        });
    }
    for (std::thread& thread : threads) thread.join();
    return found;
}

TEST(DeviceGroupTest, AllRanksLearnThatOneMustNotReachItsPeers) {
    for (const Status& status : outcomes(3, [](DeviceGroupOptions& options, FakeCudaDriver&) {
             if (options.rank == 1) options.peer_access = false;
         })) {
        EXPECT_EQ(status.code(), StatusCode::kUnsupported);
        EXPECT_THAT(status.message(), HasSubstr("rank 1: PCCL_GPU_PEER_ACCESS=0"));
    }
}

TEST(DeviceGroupTest, AllRanksLearnThatTwoAreTimeSlicedOnAGpu) {
    for (const Status& status : outcomes(3, [](DeviceGroupOptions& options, FakeCudaDriver&) {
             if (options.rank == 2) options.device = 0;
         })) {
        EXPECT_EQ(status.code(), StatusCode::kUnsupported);
        EXPECT_THAT(status.message(), HasSubstr("ranks 0 and 2 share a GPU without MPS"));
    }
}

TEST(DeviceGroupTest, RanksShareAGpuUnderMpsOrWhereOneWantsThat) {
    for (const bool has_mps : {true, false})
        for (const Status& status :
             outcomes(3, [&](DeviceGroupOptions& options, FakeCudaDriver& driver) {
                 if (options.rank == 2) options.device = 0;
                 driver.run_side_by_side(has_mps);
                 if (!has_mps && options.rank == 1) options.peer_access = true;
             }))
            EXPECT_TRUE(status.is_ok()) << status.to_string();
}

TEST(DeviceGroupTest, AllRanksLearnThatOneCannotMapItsPeersMemory) {
    for (const Status& status :
         outcomes(3, [](DeviceGroupOptions& options, FakeCudaDriver& driver) {
             if (options.rank == 2) driver.fail("import_memory", Status::unsupported("no access"));
         }))
        EXPECT_EQ(status.code(), StatusCode::kUnsupported) << status.to_string();
}

TEST(DeviceGroupTest, AllRanksLearnThatOneHasNoMemoryLeft) {
    for (const Status& status :
         outcomes(3, [](DeviceGroupOptions& options, FakeCudaDriver& driver) {
             if (options.rank == 1) driver.fail("create", Status::resource_exhausted("it is full"));
         })) {
        EXPECT_EQ(status.code(), StatusCode::kUnsupported);
        EXPECT_THAT(status.message(), StartsWith("rank 1: ")) << "not whom it made fail";
        EXPECT_THAT(status.message(), HasSubstr("it is full"));
    }
}

TEST(DeviceGroupTest, AllRanksLearnThatOneHasNoGpu) {
    for (const Status& status :
         outcomes(2, [](DeviceGroupOptions& options, FakeCudaDriver& driver) {
             if (options.rank == 0) driver.fail("use", Status::unavailable("no such device"));
         })) {
        EXPECT_EQ(status.code(), StatusCode::kUnavailable);
        EXPECT_THAT(status.message(), HasSubstr("rank 0: no such device"));
    }
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
}  // namespace pccl::device
