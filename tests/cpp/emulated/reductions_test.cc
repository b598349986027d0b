// Every element type and operator on random bits, against arithmetic of another kind.

#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <random>
#include <vector>

#include "tests/cpp/comm/arithmetic_reference.h"
#include "tests/fakes/device_ranks.h"

namespace pccl::comm {
namespace {

constexpr std::size_t kCount = 257;

std::vector<std::byte> random_bytes(Rank rank, DataType type) {
    std::mt19937 random(static_cast<unsigned>(rank) + 1);
    std::uniform_int_distribution<int> bytes(0, 255);
    std::vector<std::byte> data(kCount * size_of(type));
    for (std::byte& each : data) each = static_cast<std::byte>(bytes(random));
    return data;
}

reference::Element element(const std::vector<std::byte>& data, std::size_t index, DataType type) {
    const auto size = static_cast<std::ptrdiff_t>(size_of(type));
    const auto begin = data.begin() + static_cast<std::ptrdiff_t>(index) * size;
    return {begin, begin + size};
}

void reduce(fakes::DeviceRank& member, DataType type, ReduceOp op) {
    std::vector<std::byte> data = random_bytes(member.group.rank(), type);
    const Block block{data.data(), kCount};
    const Collective call{.type = type, .op = op, .inputs = {&block, 1}, .outputs = {&block, 1}};
    const Status status = member.group.launch(call, nullptr);
    ASSERT_TRUE(status.is_ok()) << status.to_string();
    const std::vector<std::byte> first = random_bytes(0, type);
    const std::vector<std::byte> second = random_bytes(1, type);
    for (std::size_t i = 0; i < kCount; ++i) {
        const auto want =
            reference::combine(type, op, element(first, i, type), element(second, i, type));
        ASSERT_TRUE(want.has_value());
        ASSERT_TRUE(reference::same(type, *want, element(data, i, type)))
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

}  // namespace
}  // namespace pccl::comm
