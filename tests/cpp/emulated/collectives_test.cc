// Every kernel and every schedule, of every collective.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "csrc/comm/device/device_program.h"
#include "csrc/schedule/generators.h"
#include "tests/cpp/emulated/cases.h"

namespace pccl::comm {
namespace {

using enum CollectiveKind;
using kernels::Plan;
using kernels::Protocol;
using schedule::Algorithm;

constexpr std::array kKinds{kAllReduce, kReduceScatter, kReduce, kAllGather, kAllToAll, kBroadcast};
constexpr std::array kTypes{DataType::kInt32, DataType::kUint8, DataType::kBfloat16,
                            DataType::kFloat16, DataType::kFloat32};
constexpr std::array kProtocols{Protocol::kWords, Protocol::kDirect, Protocol::kTurns,
                                Protocol::kEngines};

class EmulatedTest : public ::testing::TestWithParam<int> {
   protected:
    /// One of many cases: types, roots and alignments take turns.
    static Case varied(std::size_t index, CollectiveKind kind, std::size_t count) {
        return {.kind = kind,
                .type = kTypes[index % kTypes.size()],
                .count = count,
                .root = static_cast<Rank>(index) % GetParam(),
                .offset = index % 3};
    }
    static int least_blocks(CollectiveKind kind, Algorithm algorithm) {
        const auto made = schedule::generate(
            algorithm, {.kind = kind,
                        .ranks = GetParam(),
                        .chunks = schedule::chunk_granularity(algorithm, kind, GetParam()),
                        .slots = schedule::slots_needed(algorithm, kind)});
        return device_grid(*made)->lanes;
    }
};

TEST_P(EmulatedTest, Kernels) {
    std::vector<Case> cases;
    for (const CollectiveKind kind : kKinds)
        for (const Protocol protocol : kProtocols)
            for (const std::size_t count : {1, 333}) {
                cases.push_back(varied(cases.size(), kind, count));
                cases.back().plan = Plan{protocol, 3, 64};
            }
    for (const CollectiveKind kind : {kGather, kScatter}) {
        cases.push_back(varied(cases.size(), kind, 333));
        cases.back().plan = Plan{Protocol::kDirect, 2, 64};
    }
    run_cases(GetParam(), cases);
}

TEST_P(EmulatedTest, Schedules) {
    std::vector<Case> cases;
    for (const CollectiveKind kind : kKinds)
        for (const Algorithm algorithm : schedule::algorithms_for(kind))
            for (const std::size_t count : {1, 5003}) {
                cases.push_back(varied(cases.size(), kind, count));
                cases.back().algorithm = algorithm;
                cases.back().plan = Plan{Protocol::kDirect, 40 / GetParam(), 192};
            }
    run_cases(GetParam(), cases);
}

/// One worker a lane: many windows, and more messages than a FIFO holds.
TEST_P(EmulatedTest, SchedulesOfLongMessages) {
    std::vector<Case> cases;
    for (const CollectiveKind kind : kKinds)
        for (const Algorithm algorithm : schedule::algorithms_for(kind)) {
            const int blocks = least_blocks(kind, algorithm);
            if (blocks * GetParam() > 32) continue;
            Case& each = cases.emplace_back(varied(cases.size(), kind, 0));
            each.count = 8 * abi::kSlotBytes / size_of(each.type);
            each.algorithm = algorithm;
            each.plan = Plan{Protocol::kDirect, blocks, 192};
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
    cases.push_back({.type = DataType::kFloat32,
                     .count = 333,
                     .op = ReduceOp::kAvg,
                     .algorithm = Algorithm::kRing});
    run_cases(GetParam(), cases);
}

TEST_P(EmulatedTest, SmallOnesInOneLaunch) {
    for (const CollectiveKind kind : {kAllReduce, kAllGather, kReduceScatter})
        fakes::run_device_ranks({.size = GetParam()}, [kind](fakes::DeviceRank& member) {
            std::vector<Case> cases;
            for (const std::size_t count : {1, 77, 300})
                cases.push_back({.kind = kind, .type = DataType::kBfloat16, .count = count});
            std::vector<CaseRun> runs;
            std::vector<Collective> collectives;
            for (const Case& each : cases) runs.emplace_back(each, member);
            for (const CaseRun& run : runs) collectives.push_back(run.collective());
            ASSERT_TRUE(member.group.launch_all(collectives, nullptr).is_ok());
            for (const CaseRun& run : runs) run.expect_results();
        });
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
