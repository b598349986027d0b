// SPDX-License-Identifier: Apache-2.0

// Every kernel and every schedule, of every collective.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "csrc/schedule/generators/generators.h"
#include "tests/cpp/emulated/cases.h"
#include "tests/cpp/emulated/emulated_ranks.h"

namespace pccl::comm {
namespace {

using kernels::LaunchPlan;
using kernels::Protocol;

constexpr std::array kProtocols{Protocol::kLL, Protocol::kDirect, Protocol::kStaggered,
                                Protocol::kCopyEngine};

constexpr std::array<Size, 3> kSizes{{{1}, {333}, {333, true}}};

TEST_P(EmulatedTest, Kernels) {
    std::vector<Case> cases;
    for (const CollectiveKind kind : kKinds)
        for (const Protocol protocol : kProtocols)
            for (const Size& size : kSizes) {
                cases.push_back(varied(cases.size(), kind, size));
                cases.back().plan = LaunchPlan{protocol, 3, 64};
            }
    for (const CollectiveKind kind : {kGather, kScatter})
        for (const Size& size : kSizes) {
            cases.push_back(varied(cases.size(), kind, size));
            cases.back().plan = LaunchPlan{Protocol::kDirect, 2, 64};
        }
    run_cases(GetParam(), cases);
}

/// What is shared out in another way: a reduction by its root alone, and what a rank keeps beside
/// what it sends.
TEST(EmulatedPairTest, LongMessages) {
    const std::size_t count = (std::size_t{16} << 20) / sizeof(std::int32_t) + 3;
    std::vector<Case> cases;
    for (const CollectiveKind kind : {kReduce, kAllToAll, kScatter})
        cases.push_back({.kind = kind,
                         .count = count,
                         .root = 1,
                         .plan = LaunchPlan{Protocol::kDirect, 8, 64}});
    cases.push_back(cases.front());
    cases.back().in_place = true;
    run_cases(2, cases);
}

TEST_P(EmulatedTest, Averages) {
    std::vector<Case> cases;
    for (const Protocol protocol : kProtocols)
        cases.push_back({.type = DataType::kFloat32,
                         .count = 333,
                         .op = ReduceOp::kAvg,
                         .plan = LaunchPlan{protocol, 3, 64}});
    cases.push_back(
        {.type = DataType::kFloat32, .count = 333, .op = ReduceOp::kAvg, .algorithm = "ring"});
    run_cases(GetParam(), cases);
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
            each.plan = LaunchPlan{kProtocols[1 + below(3)], 1 + static_cast<int>(below(5)), 64};
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
