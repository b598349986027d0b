// SPDX-License-Identifier: Apache-2.0

// A schedule that the library does not know, on the emulated GPU.
#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <vector>

#include "tests/cpp/emulated/own_schedules.h"
#include "tests/cpp/schedule/star.h"
#include "tests/fakes/device_ranks.h"

namespace pccl::comm {
namespace {

std::vector<std::int32_t> sum_by(const schedule::SourcePtr& source, fakes::DeviceRank& member,
                                 const std::optional<kernels::LaunchPlan>& plan = {}) {
    std::vector<std::int32_t> data(kScheduleCount);
    std::iota(data.begin(), data.end(), member.group.rank() * 1000);
    const Block block{reinterpret_cast<std::byte*>(data.data()), kScheduleCount};
    const Status status = member.group.launch(
        {.type = DataType::kInt32, .inputs = {&block, 1}, .outputs = {&block, 1}}, nullptr,
        {.plan = plan, .schedule = source});
    EXPECT_TRUE(status.is_ok()) << status.to_string();
    member.together.arrive_and_wait();
    return data;
}

/// The star, chunk by chunk: lanes of more steps than a block holds at once, and ports with more
/// messages than slots.
schedule::Schedule long_star() {
    constexpr int kChunks = 40;
    const schedule::Schedule star = schedule::testing::star(kScheduleRanks);
    schedule::Schedule made{.name = "long_star",
                            .shape = {.ranks = kScheduleRanks, .chunks = kChunks, .slots = 1},
                            .programs = {}};
    for (const schedule::Program& program : star.programs) {
        schedule::Lane lane;
        for (int chunk = 0; chunk < kChunks; ++chunk)
            for (schedule::Step step : program.lanes.front()) {
                if (!step.src.is_empty()) step.src = schedule::Slice{step.src[0].buffer, chunk, 1};
                if (!step.dst.is_empty()) step.dst = schedule::Slice{step.dst[0].buffer, chunk, 1};
                lane.push_back(step);
            }
        made.programs.push_back({.lanes = {lane}});
    }
    return made;
}

/// The long star, over channels that differ from pair to pair and leave others out.
schedule::Schedule star_of_channels() {
    schedule::Schedule made = long_star();
    Rank rank = 0;
    for (schedule::Program& program : made.programs) {
        for (schedule::Step& step : program.lanes.front()) {
            if (step.from.is_used()) step.from.channel = 3 + rank + step.from.peer;
            if (step.to.is_used()) step.to.channel = 3 + rank + step.to.peer;
        }
        ++rank;
    }
    return made;
}

TEST(EmulatedOwnScheduleTest, GivesWhatTheBuiltInOnesGive) {
    const auto star = schedule::source_of(schedule::testing::star(kScheduleRanks)).value();
    const auto ring = schedule::built_in("ring", CollectiveKind::kAllReduce).value();
    fakes::run_device_ranks({.size = kScheduleRanks}, [&](fakes::DeviceRank& member) {
        const auto by_star = sum_by(star, member);
        EXPECT_EQ(by_star, sum_by(ring, member));
        EXPECT_EQ(by_star.back(), 3000 + 3 * static_cast<std::int32_t>(kScheduleCount - 1));
    });
}

class EmulatedLongLanesTest : public ::testing::TestWithParam<schedule::Schedule (*)()> {};

TEST_P(EmulatedLongLanesTest, GiveTheSameByEachProtocol) {
    const auto star = schedule::source_of(GetParam()()).value();
    const auto ring = schedule::built_in("ring", CollectiveKind::kAllReduce).value();
    fakes::run_device_ranks({.size = kScheduleRanks}, [&](fakes::DeviceRank& member) {
        const auto wanted = sum_by(ring, member);
        for (const auto protocol :
             {kernels::Protocol::kDirect, kernels::Protocol::kLL, kernels::Protocol::kLL128}) {
            const kernels::LaunchPlan plan{.protocol = protocol, .blocks = 4, .threads = 192};
            for (int call = 0; call < 3; ++call) EXPECT_EQ(wanted, sum_by(star, member, plan));
        }
    });
}
INSTANTIATE_TEST_SUITE_P(Stars, EmulatedLongLanesTest,
                         ::testing::Values(&long_star, &star_of_channels));

TEST(EmulatedOwnScheduleTest, ForAnotherNumberOfRanksIsRefused) {
    const auto star = schedule::source_of(schedule::testing::star(kScheduleRanks)).value();
    fakes::run_device_ranks({.size = 2}, [&](fakes::DeviceRank& member) {
        float x = 0;
        const Block block{reinterpret_cast<std::byte*>(&x), 1};
        const Status status = member.group.launch({.inputs = {&block, 1}, .outputs = {&block, 1}},
                                                  nullptr, {.plan = {}, .schedule = star});
        EXPECT_EQ(status.message(), "star all_reduce is for 3 ranks, not 2");
    });
}

}  // namespace
}  // namespace pccl::comm
