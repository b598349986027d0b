// SPDX-License-Identifier: Apache-2.0

// Every element type and operator on random bits, against arithmetic of another kind.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/collective/arithmetic/arithmetic.h"
#include "csrc/schedule/generators/generators.h"
#include "tests/cpp/collective/arithmetic_reference.h"
#include "tests/fakes/device_ranks.h"

namespace pccl::comm {
namespace {

constexpr std::size_t kReducedCount = 257;

std::vector<std::byte> random_bytes(Rank rank, DataType type) {
    std::mt19937 random(static_cast<unsigned>(rank) + 1);
    std::uniform_int_distribution<int> bytes(0, 255);
    std::vector<std::byte> data(kReducedCount * size_of(type));
    for (std::byte& each : data) each = static_cast<std::byte>(bytes(random));
    return data;
}

arithmetic::reference::Element element(const std::vector<std::byte>& data, std::size_t index,
                                       DataType type) {
    const auto size = static_cast<std::ptrdiff_t>(size_of(type));
    const auto begin = data.begin() + static_cast<std::ptrdiff_t>(index) * size;
    return {begin, begin + size};
}

void reduce(fakes::DeviceRank& member, DataType type, ReduceOp op) {
    std::vector<std::byte> data = random_bytes(member.group.rank(), type);
    const Block block{data.data(), kReducedCount};
    const Collective call{.type = type, .op = op, .inputs = {&block, 1}, .outputs = {&block, 1}};
    const Status status = member.group.launch(call, nullptr);
    ASSERT_TRUE(status.is_ok()) << status.to_string();
    const std::vector<std::byte> first = random_bytes(0, type);
    const std::vector<std::byte> second = random_bytes(1, type);
    for (std::size_t i = 0; i < kReducedCount; ++i) {
        const auto want = arithmetic::reference::combine(type, op, element(first, i, type),
                                                         element(second, i, type));
        ASSERT_TRUE(want.has_value());
        ASSERT_TRUE(arithmetic::reference::same(type, *want, element(data, i, type)))
            << "element " << i << " of type " << static_cast<int>(type) << " by operator "
            << static_cast<int>(op);
    }
}

TEST(EmulatedReductionTest, TypesAndOperators) {
    fakes::run_device_ranks({.size = 2}, [](fakes::DeviceRank& member) {
        for (int type = 0; type < kDataTypes; ++type)
            for (const ReduceOp op :
                 {ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax,
                  ReduceOp::kBand, ReduceOp::kBor, ReduceOp::kBxor}) {
                const auto wanted = static_cast<DataType>(type);
                const bool is_float8 =
                    wanted == DataType::kFloat8E4m3 || wanted == DataType::kFloat8E5m2;
                if (is_float8 || !kernels::check_reduction(wanted, op).is_ok()) continue;
                reduce(member, wanted, op);
            }
    });
}

template <typename Integer>
std::vector<Integer> numbers_of(Rank rank) {
    using Limits = std::numeric_limits<Integer>;
    std::vector<Integer> numbers{Limits::max(), Limits::min(), static_cast<Integer>(-7), 1, 0};
    numbers.push_back(static_cast<Integer>(rank == 0 ? Limits::min() : Limits::max()));
    std::mt19937_64 random(static_cast<unsigned>(rank) + 1);
    while (numbers.size() < kReducedCount) numbers.push_back(static_cast<Integer>(random()));
    return numbers;
}

__extension__ using Int128 = __int128;

/// Rounded towards zero.
template <typename Integer>
std::vector<Integer> averages_of(int ranks) {
    std::vector<Int128> sums(kReducedCount);
    for (Rank rank = 0; rank < ranks; ++rank) {
        const auto numbers = numbers_of<Integer>(rank);
        for (std::size_t i = 0; i < kReducedCount; ++i) sums[i] += numbers[i];
    }
    std::vector<Integer> averages;
    for (const Int128 sum : sums) averages.push_back(static_cast<Integer>(sum / ranks));
    return averages;
}

template <typename Integer>
void average(fakes::DeviceRank& member, DataType type, const device::DeviceLaunch& how) {
    const std::vector<Integer> numbers = numbers_of<Integer>(member.group.rank());
    auto* const memory =
        std::bit_cast<Integer*>(member.driver.allocate(numbers.size() * sizeof(Integer)));
    std::ranges::copy(numbers, memory);
    const Block block{reinterpret_cast<std::byte*>(memory), kReducedCount};
    const Status status = member.group.launch(
        {.type = type, .op = ReduceOp::kAvg, .inputs = {&block, 1}, .outputs = {&block, 1}},
        nullptr, how);
    ASSERT_TRUE(status.is_ok()) << status.to_string();
    const std::vector<Integer> averages(memory, memory + kReducedCount);
    ASSERT_EQ(averages, averages_of<Integer>(member.group.size())) << to_string(type);
}

void average_all(fakes::DeviceRank& member, const device::DeviceLaunch& how) {
    average<std::uint8_t>(member, DataType::kUint8, how);
    average<std::int8_t>(member, DataType::kInt8, how);
    average<std::uint16_t>(member, DataType::kUint16, how);
    average<std::int16_t>(member, DataType::kInt16, how);
    average<std::uint32_t>(member, DataType::kUint32, how);
    average<std::int32_t>(member, DataType::kInt32, how);
    average<std::uint64_t>(member, DataType::kUint64, how);
    average<std::int64_t>(member, DataType::kInt64, how);
}

class EmulatedAverageTest : public ::testing::TestWithParam<int> {};

TEST_P(EmulatedAverageTest, OfIntegersAreExactByEveryKernel) {
    fakes::run_device_ranks({.size = GetParam()}, [](fakes::DeviceRank& member) {
        average_all(member, {});
        for (const auto protocol :
             {kernels::Protocol::kLL, kernels::Protocol::kDirect, kernels::Protocol::kStaggered}) {
            kernels::LaunchPlan plan = kernels::ll_plan(kReducedCount * sizeof(std::uint64_t));
            if (protocol != kernels::Protocol::kLL) plan = {.blocks = 2, .threads = 64};
            plan.protocol = protocol;
            average_all(member, {.plan = plan});
        }
    });
}

INSTANTIATE_TEST_SUITE_P(Ranks, EmulatedAverageTest, ::testing::Values(2, 3, 8));

TEST(EmulatedReductionTest, NoScheduleAveragesIntegers) {
    fakes::run_device_ranks({.size = 2}, [](fakes::DeviceRank& member) {
        std::vector<std::int32_t> numbers(kReducedCount, 7);
        const Block block{reinterpret_cast<std::byte*>(numbers.data()), kReducedCount};
        const Status status = member.group.launch(
            {.type = DataType::kInt32,
             .op = ReduceOp::kAvg,
             .inputs = {&block, 1},
             .outputs = {&block, 1}},
            nullptr, {.schedule = schedule::built_in()->find("ring", CollectiveKind::kAllReduce)});
        EXPECT_EQ(status.code(), StatusCode::kUnsupported);
        EXPECT_NE(status.message().find("ring averages no integers on GPUs"), std::string::npos)
            << status.message();
        EXPECT_EQ(numbers[0], 7);
    });
}

/// Every special value beside every other: zeros of both signs, NaNs with several payloads.
std::vector<std::byte> special_bytes(Rank rank, DataType type) {
    const auto values = arithmetic::reference::special_values(type);
    std::vector<std::byte> data;
    for (std::size_t i = 0; i < values.size() * values.size(); ++i) {
        const auto& value = values[(rank % 2 == 0 ? i : i / values.size()) % values.size()];
        data.insert(data.end(), value.begin(), value.end());
    }
    return data;
}

struct Special {
    DataType type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kMin;
    schedule::SourcePtr schedule{};

    [[nodiscard]] bool is_extreme() const { return op == ReduceOp::kMin || op == ReduceOp::kMax; }
};

std::vector<Special> special_cases() {
    std::vector<schedule::SourcePtr> schedules{nullptr};
    for (const auto& each : schedule::built_in()->of(CollectiveKind::kAllReduce))
        schedules.push_back(each);
    std::vector<Special> cases;
    for (const auto& schedule : schedules) {
        for (const DataType type :
             {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat32, DataType::kFloat64})
            for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax})
                cases.push_back({type, op, schedule});
        // Of float32 a GPU makes one NaN by itself, which the emulated one does not.
        for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProduct})
            cases.push_back({DataType::kFloat64, op, schedule});
    }
    return cases;
}

/// What each rank has in the end.
using Results = std::vector<std::vector<std::byte>>;

void launch(const Special& of, fakes::DeviceRank& member, Results& results) {
    auto& data = results[static_cast<std::size_t>(member.group.rank())];
    data = special_bytes(member.group.rank(), of.type);
    const Block block{data.data(), data.size() / size_of(of.type)};
    const Status status = member.group.launch(
        {.type = of.type, .op = of.op, .inputs = {&block, 1}, .outputs = {&block, 1}}, nullptr,
        {.plan = {}, .schedule = of.schedule});
    ASSERT_TRUE(status.is_ok()) << status.to_string();
}

void check(const Special& of, const Results& results) {
    SCOPED_TRACE(concat(of.schedule ? of.schedule->name : "kernel", ", ", to_string(of.op), " of ",
                        to_string(of.type)));
    for (const auto& result : results) EXPECT_EQ(result, results[0]);
    if (!of.is_extreme()) return;
    const auto first = special_bytes(0, of.type);
    const auto second = special_bytes(1, of.type);
    for (std::size_t i = 0; i < first.size() / size_of(of.type); ++i) {
        const auto want = arithmetic::reference::combine(of.type, of.op, element(first, i, of.type),
                                                         element(second, i, of.type));
        ASSERT_TRUE(arithmetic::reference::same(of.type, *want, element(results[0], i, of.type)))
            << i;
    }
}

class EmulatedSpecialValuesTest : public ::testing::TestWithParam<int> {};

TEST_P(EmulatedSpecialValuesTest, GiveTheSameBitsOnAllRanks) {
    const std::vector<Special> cases = special_cases();
    std::vector<Results> results(cases.size(), Results(static_cast<std::size_t>(GetParam())));
    fakes::run_device_ranks({.size = GetParam()}, [&](fakes::DeviceRank& member) {
        for (std::size_t i = 0; i < cases.size(); ++i) launch(cases[i], member, results[i]);
    });
    for (std::size_t i = 0; i < cases.size(); ++i) check(cases[i], results[i]);
}

INSTANTIATE_TEST_SUITE_P(Ranks, EmulatedSpecialValuesTest, ::testing::Values(2, 3, 4));

}  // namespace
}  // namespace pccl::comm
