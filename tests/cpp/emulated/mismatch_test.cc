// Ranks that call different things hear of it, with both sides, instead of waiting or mixing data.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/cpp/emulated/cases.h"

namespace pccl::comm {
namespace {

using enum CollectiveKind;
using kernels::Plan;
using kernels::Protocol;
using schedule::Algorithm;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Plan kFewThreads{.protocol = Protocol::kDirect, .blocks = 2, .threads = 64};
constexpr Plan kTurns{.protocol = Protocol::kTurns, .blocks = 2, .threads = 64};
constexpr Plan kOneWord{.protocol = Protocol::kWords, .blocks = 1, .threads = 32};

/// What two ranks call in one place, and how the error names it.
struct Dispute {
    std::string name;
    std::vector<Case> ours;
    std::vector<Case> theirs;
    std::string our_call;
    std::string their_call;
};
std::ostream& operator<<(std::ostream& out, const Dispute& of) { return out << of.name; }

class EmulatedMismatchTest : public ::testing::TestWithParam<Dispute> {};

/// Rank 2 differs from two that agree. All have done something together before.
TEST_P(EmulatedMismatchTest, NamesBothCallsOnEveryRank) {
    const Dispute& dispute = GetParam();
    fakes::run_device_ranks({.size = 3}, [&](fakes::DeviceRank& member) {
        const Case first{.kind = kAllGather, .count = 8};
        const CaseRun before(first, member);
        ASSERT_TRUE(before.launch().is_ok());
        const bool differs = member.group.rank() == 2;
        const RunTogether run(differs ? dispute.theirs : dispute.ours, member);
        Status status = run.launch();
        while (status.is_ok()) status = member.group.health();
        EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.to_string();
        EXPECT_NE(status.peer(), member.group.rank()) << status.to_string();
        EXPECT_THAT(status.message(),
                    AllOf(HasSubstr("ranks disagree: rank"), HasSubstr("rank 2"), HasSubstr("run"),
                          HasSubstr(dispute.our_call), HasSubstr(dispute.their_call),
                          HasSubstr("in the same order")));
    });
}

constexpr Case kSum{.type = DataType::kFloat32, .count = 64};
constexpr Case kLongSum{.type = DataType::kFloat32, .count = 5000, .plan = kFewThreads};
constexpr Case kRing{.count = 512, .algorithm = Algorithm::kRing};
const std::string kSumText = "all_reduce #2 (sum of 64 float32)";
const std::string kLongSumText = "all_reduce #2 (sum of 5000 float32)";
const std::string kRingText = "all_reduce #2 (sum of 512 int32)";

const std::string kSameCall = " both run all_reduce #2 ";

const std::vector<Dispute> kDisputes = {
    {"Type", {kSum}, {{.count = 64}}, kSumText, "all_reduce #2 (sum of 64 int32)"},
    {"Operator",
     {kSum},
     {{.type = DataType::kFloat32, .count = 64, .op = ReduceOp::kMax}},
     kSumText,
     "all_reduce #2 (max of 64 float32)"},
    {"LengthByWords",
     {kSum},
     {{.type = DataType::kFloat32, .count = 65}},
     kSumText,
     "all_reduce #2 (sum of 65 float32)"},
    {"Kind",
     {kSum},
     {{.kind = kBroadcast, .type = DataType::kFloat32, .count = 64}},
     kSumText,
     "broadcast #2 (64 float32, root 0)"},
    {"Root",
     {{.kind = kBroadcast, .count = 9, .root = 0}},
     {{.kind = kBroadcast, .count = 9, .root = 1}},
     "broadcast #2 (9 int32, root 0)",
     "broadcast #2 (9 int32, root 1)"},
    {"WordsAndDirect", {kSum}, {kLongSum}, kSumText, kLongSumText},
    {"DirectAndWords", {kLongSum}, {kSum}, kLongSumText, kSumText},
    {"LengthDirectly",
     {kLongSum},
     {{.type = DataType::kFloat32, .count = 5001, .plan = kFewThreads}},
     kLongSumText,
     "all_reduce #2 (sum of 5001 float32)"},
    {"KindDirectly",
     {kLongSum},
     {{.kind = kAllToAll, .type = DataType::kFloat32, .count = 5000, .plan = kTurns}},
     kLongSumText,
     "all_to_all #2 (5000 float32)"},
    {"EnginesAndWords",
     {{.kind = kAllGather, .count = 500, .plan = Plan{Protocol::kEngines, 2, 64}}},
     {kSum},
     "all_gather #2 (500 int32)",
     kSumText},
    {"ScheduleAndDirect", {kRing}, {kLongSum}, kRingText, kLongSumText},
    {"ScheduleAndWords", {kRing}, {kSum}, kRingText, kSumText},
    {"Schedules",
     {kRing},
     {{.kind = kReduceScatter, .count = 512, .algorithm = Algorithm::kRing}},
     kRingText,
     "reduce_scatter #2 (sum of 512 int32)"},
    {"Algorithms",
     {kRing},
     {{.count = 512, .algorithm = Algorithm::kRecursiveDoubling}},
     kRingText,
     kSameCall},
    // Nobody waits for what does not come: both broadcast as many bytes.
    {"TypesOfASchedule",
     {{.kind = kBroadcast, .count = 512, .algorithm = Algorithm::kRing}},
     {{.kind = kBroadcast,
       .type = DataType::kFloat32,
       .count = 512,
       .algorithm = Algorithm::kRing}},
     "broadcast #2 (512 int32, root 0)",
     "broadcast #2 (512 float32, root 0)"},
    {"Plans",
     {{.count = 3, .plan = kOneWord}},
     {{.count = 3, .plan = kFewThreads}},
     "all_reduce #2 (sum of 3 int32)",
     kSameCall},
    {"Batches", {kSum, kSum}, {kSum, kSum, kSum}, kSumText, kSameCall},
    {"SecondOfABatch",
     {kSum, kSum},
     {kSum, {.type = DataType::kFloat32, .count = 65}},
     kSumText,
     kSameCall},
};
INSTANTIATE_TEST_SUITE_P(Calls, EmulatedMismatchTest, ::testing::ValuesIn(kDisputes),
                         [](const auto& each) { return each.param.name; });

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
        const Case call{.kind = CollectiveKind::kAllToAll, .count = kCount};
        const CaseRun run(call, member);
        Collective uneven = run.collective();
        std::vector<Block> outputs(uneven.outputs.begin(), uneven.outputs.end());
        const bool expects_less = member.group.rank() == 1;
        if (expects_less) outputs.front().count -= 1;
        uneven.outputs = outputs;
        std::byte* const behind = outputs.front().data + outputs.front().count * sizeof(int);
        const std::byte before = *behind;
        ASSERT_TRUE(
            member.group.launch(uneven, nullptr, {.plan = kFewThreads, .is_uneven = true}).is_ok());
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
