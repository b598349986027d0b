// A schedule that the library does not know, on the emulated GPU.

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/cpp/schedule/star.h"
#include "tests/fakes/device_ranks.h"

namespace pccl::comm {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kCount = 5000;

std::vector<std::int32_t> sum_by(const schedule::SourcePtr& source, fakes::DeviceRank& member) {
    std::vector<std::int32_t> data(kCount);
    std::iota(data.begin(), data.end(), member.group.rank() * 1000);
    const Block block{reinterpret_cast<std::byte*>(data.data()), kCount};
    const Status status = member.group.launch(
        {.type = DataType::kInt32, .inputs = {&block, 1}, .outputs = {&block, 1}}, nullptr,
        {.plan = {}, .schedule = source});
    EXPECT_TRUE(status.is_ok()) << status.to_string();
    member.together.arrive_and_wait();
    return data;
}

TEST(EmulatedOwnScheduleTest, GivesWhatTheBuiltInOnesGive) {
    const auto star = schedule::source_of(schedule::testing::star(kRanks)).value();
    const auto ring = schedule::built_in("ring", CollectiveKind::kAllReduce).value();
    fakes::run_device_ranks({.size = kRanks}, [&](fakes::DeviceRank& member) {
        const auto by_star = sum_by(star, member);
        EXPECT_EQ(by_star, sum_by(ring, member));
        EXPECT_EQ(by_star.back(), 3000 + 3 * static_cast<std::int32_t>(kCount - 1));
    });
}

TEST(EmulatedOwnScheduleTest, ForAnotherNumberOfRanksIsRefused) {
    const auto star = schedule::source_of(schedule::testing::star(kRanks)).value();
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
