// SPDX-License-Identifier: Apache-2.0

// Ranks that call different things hear of it, with both sides, instead of waiting or mixing data.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/cpp/emulated/cases.h"
#include "tests/cpp/emulated/few_threads.h"

namespace pccl::comm {
namespace {

using enum CollectiveKind;
using kernels::kFewThreads;
using kernels::kFewThreadsStaggered;
using kernels::LaunchPlan;
using kernels::Protocol;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr LaunchPlan kOneWord{.protocol = Protocol::kLL, .blocks = 1, .threads = 32};

constexpr Case kSum{.type = DataType::kFloat32, .count = 64};
constexpr Case kLongSum{.type = DataType::kFloat32, .count = 5000, .plan = kFewThreads};
constexpr Case kRing{.count = 512, .algorithm = "ring"};
constexpr Case kRingBroadcast{.kind = kBroadcast, .count = 512, .algorithm = "ring"};

/// What two ranks call in one place, and how the error names it.
struct Mismatch {
    std::string name;
    std::vector<Case> ours;
    std::vector<Case> theirs;
    std::string our_call;
    std::string their_call;
    bool is_long = false;
};
std::ostream& operator<<(std::ostream& out, const Mismatch& of) { return out << of.name; }

class EmulatedMismatchTest : public ::testing::TestWithParam<Mismatch> {};

/// How a call ends, of which some rank has called another.
Status end_of(const RunTogether& run, const fakes::DeviceRank& member) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    Status status = run.launch();
    while (status.is_ok() && std::chrono::steady_clock::now() < end) status = member.group.health();
    return status;
}

void expect_mismatch(const Status& status, const Mismatch& mismatch, Rank rank) {
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.to_string();
    EXPECT_NE(status.peer(), rank) << status.to_string();
    EXPECT_THAT(
        status.message(),
        AllOf(HasSubstr("ranks disagree: rank"), HasSubstr("rank 2"), HasSubstr(mismatch.our_call),
              HasSubstr(mismatch.their_call), HasSubstr("in the same order")));
}

/// All have done something together before: by LL, and by schedules, so that the ranks have each
/// other's program states when they run these again, and differ in the steps. Returns when all are
/// through.
void agree_at_first(fakes::DeviceRank& member) {
    const Case by_lines{.kind = kAllGather, .count = 8};
    for (const Case& each : {by_lines, kRing, kRingBroadcast})
        EXPECT_TRUE(CaseRun(each, member).launch().is_ok());
    member.together.arrive_and_wait();
}

/// Rank 2 differs from two that agree.
TEST_P(EmulatedMismatchTest, NamesBothCallsOnEveryRank) {
    const Mismatch& mismatch = GetParam();
    if (mismatch.is_long && !kRunsLongOnes) GTEST_SKIP() << kWhyNoLongOnes;
    fakes::run_device_ranks({.size = 3}, [&](fakes::DeviceRank& member) {
        agree_at_first(member);
        const Rank rank = member.group.rank();
        const RunTogether run(rank == 2 ? mismatch.theirs : mismatch.ours, member);
        expect_mismatch(end_of(run, member), mismatch, rank);
    });
}

const std::string kSumText = "all_reduce #4 (sum of 64 float32)";
const std::string kLongSumText = "all_reduce #4 (sum of 5000 float32)";
const std::string kRingText = "all_reduce #4 (sum of 512 int32)";

const std::string kInOtherWays =
    "with other split sizes, another plan or capsule, or other calls together";

const std::vector<Mismatch> kMismatches = {
    {"Type", {kSum}, {{.count = 64}}, kSumText, "all_reduce #4 (sum of 64 int32)"},
    {"Operator",
     {kSum},
     {{.type = DataType::kFloat32, .count = 64, .op = ReduceOp::kMax}},
     kSumText,
     "all_reduce #4 (max of 64 float32)"},
    {"LengthByLL",
     {kSum},
     {{.type = DataType::kFloat32, .count = 65}},
     kSumText,
     "all_reduce #4 (sum of 65 float32)"},
    {"Kind",
     {kSum},
     {{.kind = kBroadcast, .type = DataType::kFloat32, .count = 64}},
     kSumText,
     "broadcast #4 (64 float32, root 0)"},
    {"Root",
     {{.kind = kBroadcast, .count = 9, .root = 0}},
     {{.kind = kBroadcast, .count = 9, .root = 1}},
     "broadcast #4 (9 int32, root 0)",
     "broadcast #4 (9 int32, root 1)"},
    {"RootOfAReduce",
     {{.kind = kReduce, .count = 9, .root = 0}},
     {{.kind = kReduce, .count = 9, .root = 1}},
     "reduce #4 (sum of 9 int32, root 0)",
     "reduce #4 (sum of 9 int32, root 1)"},
    {"RootOfAGather",
     {{.kind = kGather, .count = 9, .root = 2, .plan = kFewThreads}},
     {{.kind = kGather, .count = 9, .root = 1, .plan = kFewThreads}},
     "gather #4 (9 int32, root 2)",
     "gather #4 (9 int32, root 1)"},
    {"SplitSizes",
     {{.kind = kAllToAll, .count = 100, .plan = kFewThreads}},
     {{.kind = kAllToAll, .count = 100, .plan = kFewThreads, .has_split_sizes = true}},
     "all_to_all #4 (100 int32)",
     "all_to_all #4 (100 int32, with split sizes or lists)"},
    {"LLAndDirect", {kSum}, {kLongSum}, kSumText, kLongSumText},
    {"DirectAndLL", {kLongSum}, {kSum}, kLongSumText, kSumText},
    {"LengthDirectly",
     {kLongSum},
     {{.type = DataType::kFloat32, .count = 5001, .plan = kFewThreads}},
     kLongSumText,
     "all_reduce #4 (sum of 5001 float32)"},
    {"KindDirectly",
     {kLongSum},
     {{.kind = kAllToAll, .type = DataType::kFloat32, .count = 5000, .plan = kFewThreadsStaggered}},
     kLongSumText,
     "all_to_all #4 (5000 float32)"},
    {"CopyEnginesAndLL",
     {{.kind = kAllGather, .count = 500, .plan = LaunchPlan{Protocol::kCopyEngine, 2, 64}}},
     {kSum},
     "all_gather #4 (500 int32)",
     kSumText},
    {"ScheduleAndDirect", {kRing}, {kLongSum}, kRingText, kLongSumText},
    {"ScheduleAndLL", {kRing}, {kSum}, kRingText, kSumText},
    {"Schedules",
     {kRing},
     {{.kind = kReduceScatter, .count = 512, .algorithm = "ring"}},
     kRingText,
     "reduce_scatter #4 (sum of 512 int32)"},
    {"Algorithms",
     {kRing},
     {{.count = 512, .algorithm = "recursive_doubling"}},
     kRingText,
     kInOtherWays},
    // Nobody waits for what does not come: both broadcast as many bytes.
    {"TypesOfASchedule",
     {kRingBroadcast},
     {{.kind = kBroadcast, .type = DataType::kFloat32, .count = 512, .algorithm = "ring"}},
     "broadcast #4 (512 int32, root 0)",
     "broadcast #4 (512 float32, root 0)"},
    {"Plans",
     {{.count = 3, .plan = kOneWord}},
     {{.count = 3, .plan = kFewThreads}},
     "all_reduce #4 (sum of 3 int32)",
     kInOtherWays},
    {"Batches", {kSum, kSum}, {kSum, kSum, kSum}, kSumText, kInOtherWays},
    {"LargeBatches",
     {{.count = 70'000}, {.count = 70'000}},
     {{.count = 70'000}, {.count = 70'001}},
     "all_reduce #4 (sum of 70000 int32)",
     kInOtherWays,
     true},
    {"SecondOfABatch",
     {kSum, kSum},
     {kSum, {.type = DataType::kFloat32, .count = 65}},
     kSumText,
     kInOtherWays},
};
INSTANTIATE_TEST_SUITE_P(Calls, EmulatedMismatchTest, ::testing::ValuesIn(kMismatches),
                         [](const auto& each) { return each.param.name; });

/// Rank 1 comes when the others have found out about each other, and are gone.
TEST(EmulatedLateTest, WhoComesAfterAMismatchGetsTheReason) {
    const Mismatch mismatch{
        "Late", {kLongSum}, {kSum}, kLongSumText, "all_reduce #4 (sum of 64 float32)"};
    fakes::run_device_ranks({.size = 3}, [&](fakes::DeviceRank& member) {
        agree_at_first(member);
        const Rank rank = member.group.rank();
        if (rank == 1) member.together.arrive_and_wait();
        const RunTogether run(rank == 2 ? mismatch.theirs : mismatch.ours, member);
        expect_mismatch(end_of(run, member), mismatch, rank);
        if (rank != 1) member.together.arrive_and_wait();
    });
}

/// A rank that is late says nothing, and is no mismatch; nor is one that comes in the end.
TEST(EmulatedLateTest, WhoIsLateCallsTheSame) {
    for (const Case& each : {kSum, kLongSum, kRing})
        fakes::run_device_ranks({.size = 3}, [&](fakes::DeviceRank& member) {
            const CaseRun run(each, member);
            for (int round = 0; round < 3; ++round) {
                const auto late = std::chrono::milliseconds(20 * member.group.rank());
                std::this_thread::sleep_for(late);
                const Status status = run.launch();
                ASSERT_TRUE(status.is_ok()) << status.to_string();
                run.expect_results();
            }
        });
}

/// Rank 0's block for rank 1 is longer than rank 1 expects: what lies behind stays as it is.
TEST(EmulatedLengthTest, ABlockThatIsLongerThanExpectedIsNotWritten) {
    constexpr std::size_t kCount = 1000;
    fakes::run_device_ranks({.size = 2}, [](fakes::DeviceRank& member) {
        const Case call{
            .kind = CollectiveKind::kAllToAll, .count = kCount, .has_split_sizes = true};
        const CaseRun run(call, member);
        Collective uneven = run.collective();
        std::vector<Block> outputs(uneven.outputs.begin(), uneven.outputs.end());
        const bool expects_less = member.group.rank() == 1;
        if (expects_less) outputs.front().count -= 1;
        uneven.outputs = outputs;
        std::byte* const behind = outputs.front().data + outputs.front().count * sizeof(int);
        const std::byte before = *behind;
        ASSERT_TRUE(member.group.launch(uneven, nullptr, {.plan = kFewThreads}).is_ok());
        while (member.group.health().is_ok()) std::this_thread::yield();
        EXPECT_EQ(member.group.health().code(), StatusCode::kMismatch);
        EXPECT_EQ(member.group.health().peer(), expects_less ? 0 : 1);
        EXPECT_THAT(member.group.health().message(),
                    HasSubstr("rank 0 sends 4000 bytes, but rank 1 expects 3996"));
        EXPECT_TRUE(!expects_less || *behind == before);
    });
}

}  // namespace
}  // namespace pccl::comm
