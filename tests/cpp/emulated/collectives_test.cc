// SPDX-License-Identifier: Apache-2.0

// Every kernel and every schedule, of every collective.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "csrc/device/programs/device_program.h"
#include "csrc/schedule/generators/generators.h"
#include "tests/cpp/emulated/cases.h"

namespace pccl::comm {
namespace {

using enum CollectiveKind;
using kernels::Plan;
using kernels::Protocol;
using sys::cuda::DeviceAddress;

constexpr std::array kKinds{kAllReduce, kReduceScatter, kReduce, kAllGather, kAllToAll, kBroadcast};
constexpr std::array kTypes{DataType::kInt32, DataType::kUint8, DataType::kBfloat16,
                            DataType::kFloat16, DataType::kFloat32};
constexpr std::array kProtocols{Protocol::kLL, Protocol::kDirect, Protocol::kStaggered,
                                Protocol::kCopyEngine};

constexpr std::array kOfSchedules{Protocol::kLL, Protocol::kLL128, Protocol::kDirect};

struct Size {
    std::size_t count = 0;
    bool in_place = false;
};
constexpr std::array<Size, 3> kSizes{{{1}, {333}, {333, true}}};
constexpr std::array<Size, 3> kLongerSizes{{{1}, {1501}, {5003, true}}};

class EmulatedTest : public ::testing::TestWithParam<int> {
   protected:
    /// One of many cases: types, roots and alignments take turns.
    static Case varied(std::size_t index, CollectiveKind kind, const Size& size) {
        return {.kind = kind,
                .type = kTypes[index % kTypes.size()],
                .count = size.count,
                .root = static_cast<Rank>(index) % GetParam(),
                .offset = index % 4,
                .offset_by_rank = index % 3 / 2,
                .in_place = size.in_place};
    }
    /// All, or where every thread of a GPU costs half a millisecond (ThreadSanitizer), in turn.
    static std::vector<Protocol> schedule_protocols([[maybe_unused]] std::size_t index) {
#if defined(__SANITIZE_THREAD__)
        return {kOfSchedules[index % kOfSchedules.size()]};
#else
        return {kOfSchedules.begin(), kOfSchedules.end()};
#endif
    }
    static Plan most_for_schedules(Protocol protocol) { return {protocol, 40 / GetParam(), 192}; }
    static int least_blocks(const schedule::ScheduleSource& source) {
        const auto made = schedule::generate(source, schedule::least_shape(source, GetParam()));
        return device::device_grid(*made)->lanes;
    }
};

TEST_P(EmulatedTest, Kernels) {
    std::vector<Case> cases;
    for (const CollectiveKind kind : kKinds)
        for (const Protocol protocol : kProtocols)
            for (const Size& size : kSizes) {
                cases.push_back(varied(cases.size(), kind, size));
                cases.back().plan = Plan{protocol, 3, 64};
            }
    for (const CollectiveKind kind : {kGather, kScatter})
        for (const Size& size : kSizes) {
            cases.push_back(varied(cases.size(), kind, size));
            cases.back().plan = Plan{Protocol::kDirect, 2, 64};
        }
    run_cases(GetParam(), cases);
}

/// What is shared out in another way: a reduction by its root alone, and what a rank keeps beside
/// what it sends.
TEST(EmulatedPairTest, LongMessages) {
    const std::size_t count = (std::size_t{16} << 20) / sizeof(std::int32_t) + 3;
    std::vector<Case> cases;
    for (const CollectiveKind kind : {kReduce, kAllToAll, kScatter})
        cases.push_back(
            {.kind = kind, .count = count, .root = 1, .plan = Plan{Protocol::kDirect, 8, 64}});
    cases.push_back(cases.front());
    cases.back().in_place = true;
    run_cases(2, cases);
}

TEST_P(EmulatedTest, Schedules) {
    std::vector<Case> cases;
    for (const CollectiveKind kind : kKinds)
        for (const schedule::SourcePtr& source : schedule::built_in()->of(kind))
            for (const Size& size : kLongerSizes)
                for (const Protocol protocol : schedule_protocols(cases.size())) {
                    cases.push_back(varied(cases.size(), kind, size));
                    cases.back().algorithm = source->name;
                    cases.back().plan = most_for_schedules(protocol);
                }
    run_cases(GetParam(), cases);
}

/// One worker a lane: many windows, and more messages than a FIFO holds.
TEST_P(EmulatedTest, SchedulesOfLongMessages) {
    std::vector<Case> cases;
    for (const CollectiveKind kind : kKinds)
        for (const schedule::SourcePtr& source : schedule::built_in()->of(kind)) {
            const int blocks = least_blocks(*source);
            if (blocks * GetParam() > 32) continue;
            for (const Protocol protocol : schedule_protocols(cases.size())) {
                const std::size_t slot =
                    device::DeviceGrid{}.window_bytes(kernels::form_of(protocol));
                Case& each = cases.emplace_back(varied(cases.size(), kind, {}));
                each.count = 8 * slot / size_of(each.type);
                each.algorithm = source->name;
                each.plan = Plan{protocol, blocks, 192};
            }
        }
    run_cases(GetParam(), cases);
}

TEST_P(EmulatedTest, Averages) {
    std::vector<Case> cases;
    for (const Protocol protocol : kProtocols)
        cases.push_back({.type = DataType::kFloat32,
                         .count = 333,
                         .op = ReduceOp::kAvg,
                         .plan = Plan{protocol, 3, 64}});
    cases.push_back(
        {.type = DataType::kFloat32, .count = 333, .op = ReduceOp::kAvg, .algorithm = "ring"});
    run_cases(GetParam(), cases);
}

/// On every rank, all of them by one call. Rank 0's longest are in memory that others cannot map.
void run_together(int ranks, const std::vector<Case>& cases) {
    // A launch of 8 ranks is a thousand blocks of threads that take turns on few cores: 5 s of two.
    constexpr std::chrono::seconds kTimeout{60};
    fakes::run_device_ranks({.size = ranks, .timeout = kTimeout}, [&](fakes::DeviceRank& member) {
        const RunTogether run(cases, member);
        const auto collectives = run.collectives();
        const Block& longest_input = std::ranges::max_element(collectives, {}, [](auto& each) {
                                         return longest(each);
                                     })->inputs.front();
        if (member.group.rank() == 0)
            member.driver.make_unshareable(std::bit_cast<DeviceAddress>(longest_input.data));
        const Status status = run.launch();
        ASSERT_TRUE(status.is_ok()) << status.to_string();
        run.expect_results();
    });
}

TEST_P(EmulatedTest, SmallOnesInOneLaunch) {
    for (const CollectiveKind kind : {kAllReduce, kAllGather, kReduceScatter}) {
        std::vector<Case> cases;
        for (const std::size_t count : {1, 77, 300})
            cases.push_back({.kind = kind, .type = DataType::kBfloat16, .count = count});
        run_together(GetParam(), cases);
    }
}

/// A large one among small ones, aligned and not, in place and not; and what must go alone.
TEST_P(EmulatedTest, LargeOnesInOneLaunch) {
    if (!kRunsLongOnes) GTEST_SKIP() << kWhyNoLongOnes;
    constexpr std::size_t kLarge = 70'000;
    for (const CollectiveKind kind : {kAllReduce, kAllGather, kReduceScatter}) {
        std::vector<Case> cases;
        for (const std::size_t count : {std::size_t{1}, std::size_t{5003}, kLarge, std::size_t{77}})
            cases.push_back({.kind = kind,
                             .type = DataType::kBfloat16,
                             .count = count,
                             .op = ReduceOp::kAvg,
                             .offset = count % 4,
                             .in_place = count == kLarge});
        cases.push_back(cases.front());
        cases.back().type = DataType::kInt32;
        cases.back().op = ReduceOp::kSum;
        run_together(GetParam(), cases);
    }
}

/// A plan that is asked for holds for each of them: here it carries the first alone.
TEST(EmulatedTogetherTest, APlanIsNotPassedOver) {
    std::vector<Case> cases(2, {.count = 1, .plan = Plan{Protocol::kLL, 1, 32}});
    cases.back().count = 1000;
    fakes::run_device_ranks({.size = 2}, [&cases](fakes::DeviceRank& member) {
        const RunTogether run(cases, member);
        EXPECT_EQ(run.launch().code(), StatusCode::kInvalidArgument);
    });
}

/// Kernels of all kinds and sizes after one another, as the library plans them or otherwise.
TEST_P(EmulatedTest, RandomSequences) {
    std::mt19937 random(static_cast<unsigned>(GetParam()));
    const auto below = [&random](std::size_t end) { return random() % end; };
    std::vector<Case> cases;
    for (int i = 0; i < 60; ++i) {
        const CollectiveKind kind = kKinds[below(kKinds.size())];
        const std::size_t count = 1 + below(std::size_t{1} << below(12));
        Case& each = cases.emplace_back(varied(below(60), kind, {count, below(2) == 0}));
        const auto sources = schedule::built_in()->of(kind);
        if (below(3) == 0) {
            each.algorithm = sources[below(sources.size())]->name;
            each.plan = most_for_schedules(kOfSchedules[below(3)]);
        } else if (below(2) == 0) {
            each.plan = Plan{kProtocols[1 + below(3)], 1 + static_cast<int>(below(5)), 64};
        }
    }
    run_cases(GetParam(), cases);
}

#if defined(__SANITIZE_THREAD__)
constexpr std::array kWorldSizes{2, 3, 4};  // it knows 8128 threads
#else
constexpr std::array kWorldSizes{2, 3, 4, 8};
#endif

INSTANTIATE_TEST_SUITE_P(WorldSizes, EmulatedTest, ::testing::ValuesIn(kWorldSizes),
                         [](const auto& each) { return std::to_string(each.param) + "Ranks"; });

}  // namespace
}  // namespace pccl::comm
