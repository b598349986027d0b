// SPDX-License-Identifier: Apache-2.0

// A schedule that the library does not know, on the emulated GPU.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "csrc/device/launch/preferences.h"
#include "tests/cpp/schedule/star.h"
#include "tests/fakes/device_ranks.h"

namespace pccl::comm {
namespace {

constexpr int kScheduleRanks = 3;
constexpr std::size_t kScheduleCount = 5000;

std::vector<std::int32_t> sum_by(const schedule::SourcePtr& source, fakes::DeviceRank& member,
                                 const std::optional<kernels::Plan>& plan = {}) {
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
            const kernels::Plan plan{.protocol = protocol, .blocks = 4, .threads = 192};
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

/// `source` for `sizes`, in a catalogue of its own; `asked` counts who asks it for a program.
std::shared_ptr<const schedule::Catalogue> loaded(const schedule::SourcePtr& source,
                                                  schedule::SizeRange sizes,
                                                  std::shared_ptr<std::atomic<int>> asked) {
    auto counting = std::make_shared<schedule::ScheduleSource>(*source);
    counting->sizes = sizes;
    counting->program = [source, asked = std::move(asked)](const schedule::Shape& shape,
                                                           Rank rank) {
        ++*asked;
        return source->program(shape, rank);
    };
    auto catalogue = std::make_shared<schedule::Catalogue>(*schedule::built_in());
    EXPECT_TRUE(catalogue->add(counting).is_ok());
    return catalogue;
}

Status sum_with(fakes::DeviceRank& member, std::vector<std::int32_t>& data) {
    const Block block{reinterpret_cast<std::byte*>(data.data()), data.size()};
    return member.group.launch(
        {.type = DataType::kInt32, .inputs = {&block, 1}, .outputs = {&block, 1}}, nullptr);
}

TEST(EmulatedLoadedScheduleTest, IsChosenForItsSizesFromTheNextLaunchOn) {
    const auto star = schedule::source_of(schedule::testing::star(kScheduleRanks)).value();
    fakes::run_device_ranks({.size = kScheduleRanks}, [&](fakes::DeviceRank& member) {
        const auto asked = std::make_shared<std::atomic<int>>(0);
        const auto sum = [&](std::size_t count) {
            std::vector<std::int32_t> data(count, member.group.rank() + 1);
            const Status status = sum_with(member, data);
            EXPECT_TRUE(status.is_ok()) << status.to_string();
            member.together.arrive_and_wait();
            EXPECT_EQ(data, std::vector<std::int32_t>(count, 6));
        };
        member.group.choose_from(
            loaded(star, {.least = 4 * kScheduleCount, .most = 4 * kScheduleCount}, asked));
        const int on_loading = *asked;
        sum(kScheduleCount - 1);
        EXPECT_EQ(*asked, on_loading);
        sum(kScheduleCount);
        EXPECT_GT(*asked, on_loading);
        const int at_first = *asked;
        member.group.choose_from(schedule::built_in());
        sum(kScheduleCount);
        EXPECT_EQ(*asked, at_first);
    });
}

std::span<std::int32_t> gpu_memory(fakes::DeviceRank& member, std::size_t count,
                                   std::int32_t value) {
    const std::size_t bytes = std::max<std::size_t>(count, 1) * sizeof value;
    auto* const data = std::bit_cast<std::int32_t*>(member.driver.allocate(bytes));
    std::fill_n(data, count, value);
    return {data, count};
}

Block block_of(std::span<std::int32_t> values) {
    return {reinterpret_cast<std::byte*>(values.data()), values.size()};
}

/// Rank r gets the sum of r elements, of each rank p's own p + 1, in `sum`.
Status scatter_sums(fakes::DeviceRank& member, std::span<std::int32_t> sum,
                    const device::DeviceLaunch& wanted) {
    std::vector<Block> inputs;
    for (std::size_t owner = 0; owner < kScheduleRanks; ++owner)
        inputs.push_back(block_of(gpu_memory(member, owner, member.group.rank() + 1)));
    const Block output = block_of(sum);
    const Status status = member.group.launch({.kind = CollectiveKind::kReduceScatter,
                                               .type = DataType::kInt32,
                                               .inputs = inputs,
                                               .outputs = {&output, 1}},
                                              nullptr, wanted);
    member.together.arrive_and_wait();
    return status;
}

TEST(EmulatedLoadedScheduleTest, BlocksOfSeveralLengthsGoByKernels) {
    const auto pat = schedule::built_in("pat", CollectiveKind::kReduceScatter).value();
    ASSERT_TRUE(pat->takes_uneven) << "over links";
    auto capsule = std::make_shared<schedule::ScheduleSource>(*pat);
    capsule->name = "capsule";
    capsule->digest += 1;
    fakes::run_device_ranks({.size = kScheduleRanks}, [&](fakes::DeviceRank& member) {
        const auto asked = std::make_shared<std::atomic<int>>(0);
        member.group.choose_from(loaded(capsule, {}, asked));
        const int on_loading = *asked;
        const auto own = static_cast<std::size_t>(member.group.rank());
        const auto sum = gpu_memory(member, own, -1);
        const Status status = scatter_sums(member, sum, {});
        EXPECT_TRUE(status.is_ok()) << status.to_string();
        EXPECT_EQ(std::vector(sum.begin(), sum.end()), std::vector<std::int32_t>(own, 6));
        EXPECT_EQ(*asked, on_loading);
        EXPECT_EQ(scatter_sums(member, sum, {.plan = {}, .schedule = pat}).code(),
                  StatusCode::kUnsupported);
    });
}

TEST(EmulatedLoadedScheduleTest, GoesByTheProtocolThatItsCapsuleAsksFor) {
    using enum schedule::MessageProtocol;
    const auto star = schedule::source_of(schedule::testing::star(kScheduleRanks)).value();
    for (const auto protocol : {kLL, kLL128, kDirect}) {
        const auto asking = std::make_shared<schedule::ScheduleSource>(*star);
        asking->protocol = protocol;
        fakes::run_device_ranks({.size = kScheduleRanks}, [&](fakes::DeviceRank& member) {
            member.group.choose_from(loaded(asking, {}, std::make_shared<std::atomic<int>>(0)));
            std::vector<std::int32_t> data(kScheduleCount, member.group.rank() + 1);
            const Status status = sum_with(member, data);
            EXPECT_TRUE(status.is_ok()) << status.to_string();
            member.together.arrive_and_wait();
            EXPECT_EQ(data, std::vector<std::int32_t>(kScheduleCount, 6));
            const auto planned =
                member.group.explain(CollectiveKind::kAllReduce, 4 * kScheduleCount);
            EXPECT_EQ(device::name_of(planned.front().plan.protocol), to_string(protocol));
        });
    }
}

TEST(EmulatedLoadedScheduleTest, OnSomeRanksAloneIsAMismatchOnAll) {
    const auto star = schedule::source_of(schedule::testing::star(kScheduleRanks)).value();
    fakes::run_device_ranks({.size = kScheduleRanks}, [&](fakes::DeviceRank& member) {
        if (member.group.rank() == 1)
            member.group.choose_from(loaded(star, {}, std::make_shared<std::atomic<int>>(0)));
        std::vector<std::int32_t> data(16, 1);
        Status status = sum_with(member, data);
        member.together.arrive_and_wait();
        if (status.is_ok()) status = member.group.health();
        EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.to_string();
    });
}

}  // namespace
}  // namespace pccl::comm
