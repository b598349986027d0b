// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/programs/loaded_schedules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "csrc/device/launch/preferences.h"
#include "tests/cpp/emulated/own_schedules.h"
#include "tests/cpp/schedule/star.h"
#include "tests/fakes/device_ranks.h"

namespace pccl::comm {
namespace {

/// `source` for `sizes`, in a catalogue of its own; `requested` counts who asks it for a program.
std::shared_ptr<const schedule::Catalogue> loaded(const schedule::SourcePtr& source,
                                                  schedule::SizeRange sizes,
                                                  std::shared_ptr<std::atomic<int>> requested) {
    auto counting = std::make_shared<schedule::ScheduleSource>(*source);
    counting->sizes = sizes;
    counting->program = [source, requested = std::move(requested)](const schedule::Shape& shape,
                                                                   Rank rank) {
        ++*requested;
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
        const auto requested = std::make_shared<std::atomic<int>>(0);
        const auto sum = [&](std::size_t count) {
            std::vector<std::int32_t> data(count, member.group.rank() + 1);
            const Status status = sum_with(member, data);
            EXPECT_TRUE(status.is_ok()) << status.to_string();
            member.together.arrive_and_wait();
            EXPECT_EQ(data, std::vector<std::int32_t>(count, 6));
        };
        member.group.choose_from(
            loaded(star, {.least = 4 * kScheduleCount, .most = 4 * kScheduleCount}, requested));
        const int on_loading = *requested;
        sum(kScheduleCount - 1);
        EXPECT_EQ(*requested, on_loading);
        sum(kScheduleCount);
        EXPECT_GT(*requested, on_loading);
        const int at_first = *requested;
        member.group.choose_from(schedule::built_in());
        sum(kScheduleCount);
        EXPECT_EQ(*requested, at_first);
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
        const auto requested = std::make_shared<std::atomic<int>>(0);
        member.group.choose_from(loaded(capsule, {}, requested));
        const int on_loading = *requested;
        const auto own = static_cast<std::size_t>(member.group.rank());
        const auto sum = gpu_memory(member, own, -1);
        const Status status = scatter_sums(member, sum, {});
        EXPECT_TRUE(status.is_ok()) << status.to_string();
        EXPECT_EQ(std::vector(sum.begin(), sum.end()), std::vector<std::int32_t>(own, 6));
        EXPECT_EQ(*requested, on_loading);
        EXPECT_EQ(scatter_sums(member, sum, {.plan = {}, .schedule = pat}).code(),
                  StatusCode::kUnsupported);
    });
}

TEST(EmulatedLoadedScheduleTest, UsesTheProtocolOfItsCapsule) {
    using enum schedule::MessageProtocol;
    const auto star = schedule::source_of(schedule::testing::star(kScheduleRanks)).value();
    for (const auto protocol : {kLL, kLL128, kDirect}) {
        const auto requesting = std::make_shared<schedule::ScheduleSource>(*star);
        requesting->protocol = protocol;
        fakes::run_device_ranks({.size = kScheduleRanks}, [&](fakes::DeviceRank& member) {
            member.group.choose_from(loaded(requesting, {}, std::make_shared<std::atomic<int>>(0)));
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
