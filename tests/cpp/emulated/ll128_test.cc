// SPDX-License-Identifier: Apache-2.0

// Schedules by LL128, on the emulated GPU.
#include "tests/cpp/emulated/ll128.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "csrc/schedule/generators/generators.h"
#include "tests/cpp/emulated/cases.h"
#include "tests/cpp/schedule/ring_sums.h"
#include "tests/emulator/gpu.h"

namespace pccl::comm {
namespace {

using enum CollectiveKind;
using kernels::LaunchPlan;
using kernels::Protocol;

class EmulatedLL128Test : public ::testing::TestWithParam<int> {};

/// Bytes around what a line, a pair of them, a warp's share and a slot hold.
TEST_P(EmulatedLL128Test, CarryBlocksOfEveryLength) {
    std::vector<Case> cases;
    for (const std::size_t bytes :
         {1, 15, 16, 119, 120, 121, 239, 240, 241, 959, 960, 961, 30'719, 30'720, 30'721, 100'003})
        for (const CollectiveKind kind : {kAllReduce, kAllGather})
            cases.push_back({.kind = kind,
                             .type = DataType::kUint8,
                             .count = bytes,
                             .offset = cases.size() % 3,
                             .plan = kByLL128,
                             .algorithm = "ring"});
    run_cases(GetParam(), cases);
}

TEST_P(EmulatedLL128Test, CarriesEveryTypeAndOperatorThatLLCarries) {
    std::vector<Case> cases;
    for (const DataType type : {DataType::kInt32, DataType::kUint8, DataType::kBfloat16,
                                DataType::kFloat16, DataType::kFloat32})
        for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg})
            if (op == ReduceOp::kSum || type == DataType::kFloat32)
                cases.push_back({.type = type,
                                 .count = 5003,
                                 .op = op,
                                 .offset = cases.size() % 2,
                                 .in_place = cases.size() % 3 == 0,
                                 .plan = kByLL128,
                                 .algorithm = "ring"});
    run_cases(GetParam(), cases);
}

template <typename T>
std::vector<T> sums_by(Protocol protocol, fakes::DeviceRank& member, DataType type) {
    std::vector<T> data(3001);
    for (std::size_t i = 0; i < data.size(); ++i)
        data[i] =
            static_cast<T>((i * 7919 + static_cast<std::size_t>(member.group.rank()) * 104'729) %
                           1'000'003) /
            static_cast<T>(3);
    const Block block{reinterpret_cast<std::byte*>(data.data()),
                      data.size() * sizeof(T) / size_of(type)};
    const Status status =
        member.group.launch({.type = type, .inputs = {&block, 1}, .outputs = {&block, 1}}, nullptr,
                            {.plan = LaunchPlan{protocol, 4, 192},
                             .schedule = schedule::built_in("ring", kAllReduce).value()});
    EXPECT_TRUE(status.is_ok()) << status.to_string();
    member.together.arrive_and_wait();
    return data;
}

template <typename T>
void expect_the_same(fakes::DeviceRank& member, DataType type) {
    const auto wanted = sums_by<T>(Protocol::kDirect, member, type);
    const auto found = sums_by<T>(Protocol::kLL128, member, type);
    EXPECT_EQ(std::memcmp(found.data(), wanted.data(), found.size() * sizeof(T)), 0)
        << "type " << static_cast<int>(type);
}

TEST_P(EmulatedLL128Test, GiveTheBitsThatPlainMessagesGive) {
    fakes::run_device_ranks({.size = GetParam()}, [](fakes::DeviceRank& member) {
        expect_the_same<std::int8_t>(member, DataType::kInt8);
        expect_the_same<std::uint16_t>(member, DataType::kUint16);
        expect_the_same<std::int16_t>(member, DataType::kInt16);
        expect_the_same<std::uint32_t>(member, DataType::kUint32);
        expect_the_same<std::int64_t>(member, DataType::kInt64);
        expect_the_same<std::uint64_t>(member, DataType::kUint64);
        expect_the_same<float>(member, DataType::kFloat32);
        expect_the_same<double>(member, DataType::kFloat64);
        expect_the_same<float>(member, DataType::kComplex64);
    });
}

TEST_P(EmulatedLL128Test, AddInTheProgramsOrder) {
    const int ranks = GetParam();
    const auto ring = schedule::testing::lone_ring(ranks);
    constexpr std::size_t kCount = 50'001;
    const auto wanted = schedule::testing::ring_sums(ranks, kCount);
    fakes::run_device_ranks({.size = ranks}, [&](fakes::DeviceRank& member) {
        auto data = schedule::testing::floats_of(member.group.rank(), kCount);
        const Block block{reinterpret_cast<std::byte*>(data.data()), kCount};
        const Status status = member.group.launch(
            {.type = DataType::kFloat32, .inputs = {&block, 1}, .outputs = {&block, 1}}, nullptr,
            {.plan = LaunchPlan{Protocol::kLL128, 8, 192}, .schedule = ring});
        EXPECT_TRUE(status.is_ok()) << status.to_string();
        member.together.arrive_and_wait();
        EXPECT_TRUE(data == wanted) << "rank " << member.group.rank();
    });
}

INSTANTIATE_TEST_SUITE_P(Ranks, EmulatedLL128Test, testing::Values(2, 3, 5),
                         [](const auto& each) { return std::to_string(each.param) + "Ranks"; });

}  // namespace
}  // namespace pccl::comm
