// SPDX-License-Identifier: Apache-2.0

// Reductions of zeros of both signs, infinities and NaNs with payloads: by every algorithm that a
// user can ask for, all ranks have the same bits, which are what the definition gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/collective/arithmetic/arithmetic.h"
#include "csrc/collective/shm_algorithm.h"
#include "csrc/schedule/generators/generators.h"
#include "tests/cpp/collective/arithmetic_reference.h"
#include "tests/cpp/comm/ranks.h"

namespace pccl::comm {
namespace {

using arithmetic::reference::Element;

constexpr DataType kTypes[] = {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat32,
                               DataType::kFloat64};
constexpr ReduceOp kOps[] = {ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kSum, ReduceOp::kProduct};
constexpr CollectiveKind kReducingKinds[] = {
    CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter, CollectiveKind::kReduce};
constexpr std::size_t kNumbers = 6;       // that come before the NaNs in values_of()
constexpr std::size_t kBlockCount = 133;  // of a block: whole vectors, and some elements more

const std::vector<Element>& values_of(DataType type) {
    static const auto kValues = [] {
        std::map<DataType, std::vector<Element>> values;
        for (const DataType each : kTypes) {
            values[each] = arithmetic::reference::special_values(each);
            // Without the smallest numbers, of which sums and products depend on the order.
            values[each].erase(values[each].begin() + 2, values[each].begin() + 4);
        }
        return values;
    }();
    return kValues.at(type);
}

/// Element `index` of a rank's input. A fifth of the indices have zeros alone, another NaNs alone,
/// another no NaN.
const Element& input(DataType type, Rank rank, std::size_t index) {
    const auto& values = values_of(type);
    std::uint64_t random = (index * 8 + static_cast<std::uint64_t>(rank)) * 0x9E37'79B9'7F4A'7C15;
    random = (random ^ (random >> 32)) * 0xBF58'476D'1CE4'E5B9 >> 32;
    if (index % 5 == 0) return values[random % 2];
    if (index % 5 == 1) return values[kNumbers + random % (values.size() - kNumbers)];
    return values[random % (index % 5 == 2 ? kNumbers : values.size())];
}

Element reduced(DataType type, ReduceOp op, int ranks, std::size_t index) {
    Element result = input(type, 0, index);
    for (Rank rank = 1; rank < ranks; ++rank)
        result = *arithmetic::reference::combine(type, op, result, input(type, rank, index));
    return result;
}

/// Elements [first, first + count) of what `element(index)` gives.
template <typename ElementOf>
std::vector<std::byte> bytes_of(std::size_t first, std::size_t count, const ElementOf& element) {
    std::vector<std::byte> bytes;
    for (std::size_t index = first; index < first + count; ++index) {
        const Element next = element(index);
        bytes.insert(bytes.end(), next.begin(), next.end());
    }
    return bytes;
}

std::vector<Block> blocks_in(std::vector<std::byte>& bytes, DataType type, std::size_t number) {
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < number; ++i)
        blocks.push_back({bytes.data() + i * kBlockCount * size_of(type), kBlockCount});
    return blocks;
}

/// Whether two arrays have the same bits; NaNs of sums and products are all alike.
bool is_right(DataType type, ReduceOp op, const std::vector<std::byte>& got,
              const std::vector<std::byte>& want) {
    if (op == ReduceOp::kMin || op == ReduceOp::kMax) return got == want;
    const std::size_t size = size_of(type);
    for (std::size_t at = 0; at < got.size(); at += size)
        if (!arithmetic::reference::same(type, Element(&got[at], &got[at] + size),
                                         Element(&want[at], &want[at] + size)))
            return false;
    return true;
}

/// Runs one collective, compares this rank's part of the result, and returns it.
std::vector<std::byte> reduce(CommunicatorImpl& comm, CollectiveKind kind, DataType type,
                              ReduceOp op) {
    const auto ranks = static_cast<std::size_t>(comm.size());
    const auto self = static_cast<std::size_t>(comm.rank());
    const bool scatters = kind == CollectiveKind::kReduceScatter;
    const std::size_t number = scatters ? ranks : 1;
    const Rank root = kind == CollectiveKind::kReduce ? comm.size() - 1 : 0;
    const bool has_result = kind != CollectiveKind::kReduce || comm.rank() == root;
    auto in = bytes_of(0, number * kBlockCount,
                       [&](std::size_t index) { return input(type, comm.rank(), index); });
    std::vector<std::byte> out(kBlockCount * size_of(type));
    const Status status = comm.run({.kind = kind,
                                    .type = type,
                                    .op = op,
                                    .root = root,
                                    .inputs = blocks_in(in, type, number),
                                    .outputs = blocks_in(out, type, has_result ? 1 : 0)});
    EXPECT_TRUE(status.is_ok()) << status.to_string();
    const auto want =
        bytes_of(scatters ? self * kBlockCount : 0, kBlockCount,
                 [&](std::size_t index) { return reduced(type, op, comm.size(), index); });
    EXPECT_TRUE(!has_result || is_right(type, op, out, want))
        << schedule::to_string(kind) << ", " << to_string(op) << " of " << to_string(type)
        << ", rank " << self << " of " << ranks;
    return out;
}

std::vector<std::string_view> algorithms_of(CollectiveKind kind) {
    std::vector<std::string_view> names;
    for (const schedule::SourcePtr& source : schedule::built_in()->of(kind))
        names.push_back(source->name);
    for (const ShmAlgorithm algorithm : kShmAlgorithms)
        if (algorithm != ShmAlgorithm::kTwoShot || kind == CollectiveKind::kAllReduce)
            names.push_back(to_string(algorithm));
    return names;
}

/// "all_reduce=ring,reduce_scatter=ring,...": the i-th algorithm of each kind, over and over.
std::string ith_algorithms(std::size_t i) {
    std::string list;
    for (const CollectiveKind kind : kReducingKinds) {
        const auto names = algorithms_of(kind);
        list += concat(list.empty() ? "" : ",", schedule::to_string(kind), "=",
                       names[i % names.size()]);
    }
    return list;
}

class ReductionBitsTest : public ::testing::TestWithParam<int> {};

TEST_P(ReductionBitsTest, AreTheSameOnAllRanksByEveryAlgorithm) {
    for (std::size_t i = 0; i < algorithms_of(CollectiveKind::kAllReduce).size(); ++i) {
        SCOPED_TRACE(ith_algorithms(i));
        std::vector<std::vector<std::byte>> of_ranks(static_cast<std::size_t>(GetParam()));
        run_ranks({.size = GetParam(), .algorithm = ith_algorithms(i)},
                  [&](CommunicatorImpl& comm) {
                      auto& mine = of_ranks[static_cast<std::size_t>(comm.rank())];
                      for (const CollectiveKind kind : kReducingKinds)
                          for (const DataType type : kTypes)
                              for (const ReduceOp op : kOps) {
                                  const auto result = reduce(comm, kind, type, op);
                                  if (kind == CollectiveKind::kAllReduce)
                                      mine.insert(mine.end(), result.begin(), result.end());
                              }
                  });
        for (const auto& theirs : of_ranks) EXPECT_EQ(theirs, of_ranks.front());
    }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ReductionBitsTest, ::testing::Range(2, 9));

}  // namespace
}  // namespace pccl::comm
