// SPDX-License-Identifier: Apache-2.0

// Collectives of int64 whose inputs are a function of rank, block and index: what each rank must
// have in the end, by the definition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/collective/collective.h"
#include "csrc/schedule/schedule.h"

namespace pccl::comm::testing {

using WideValues = std::vector<std::int64_t>;

[[nodiscard]] inline std::int64_t value_of(Rank rank, std::size_t block, std::size_t index) {
    return static_cast<std::int64_t>(1'000'000 * (rank + 1)) +
           static_cast<std::int64_t>(1000 * block + index);
}

/// Makes `values` one side of a collective, and returns its blocks, of `count` elements each.
[[nodiscard]] inline std::vector<Block> blocks_over(WideValues& values,
                                                    const schedule::Shape& shape,
                                                    schedule::Buffer side, std::size_t count) {
    const auto number = static_cast<std::size_t>(schedule::blocks(shape.kind, side, shape.ranks));
    values.resize(number * count);
    std::vector<Block> all;
    for (std::size_t i = 0; i < number; ++i)
        all.push_back({reinterpret_cast<std::byte*>(values.data() + i * count), count});
    return all;
}

inline void fill(WideValues& input, Rank rank, std::size_t count) {
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = value_of(rank, i / count, i % count);
}

/// Element `index` of block `block` of what `rank` should end with.
[[nodiscard]] inline std::int64_t expected(const schedule::Shape& shape, Rank rank,
                                           std::size_t block, std::size_t index) {
    const auto own = static_cast<std::size_t>(rank);
    switch (shape.kind) {
        case CollectiveKind::kBroadcast:
            return value_of(shape.root, 0, index);
        case CollectiveKind::kAllGather:
        case CollectiveKind::kGather:
            return value_of(static_cast<Rank>(block), 0, index);
        case CollectiveKind::kScatter:
            return value_of(shape.root, own, index);
        case CollectiveKind::kAllToAll:
            return value_of(static_cast<Rank>(block), own, index);
        default:
            break;
    }
    std::int64_t sum = 0;
    const std::size_t from = shape.kind == CollectiveKind::kReduceScatter ? own : 0;
    for (Rank peer = 0; peer < shape.ranks; ++peer) sum += value_of(peer, from, index);
    return sum;
}

[[nodiscard]] inline bool has_output(const schedule::Shape& shape, Rank rank) {
    const bool at_root =
        shape.kind == CollectiveKind::kReduce || shape.kind == CollectiveKind::kGather;
    return !at_root || rank == shape.root;
}

/// The first element of `output` that is not what it should be; empty when all are.
[[nodiscard]] inline std::string wrong_value(const WideValues& output, const schedule::Shape& shape,
                                             Rank rank, std::size_t count) {
    if (!has_output(shape, rank)) return {};
    for (std::size_t i = 0; i < output.size(); ++i) {
        const std::int64_t wanted = expected(shape, rank, i / count, i % count);
        if (output[i] != wanted)
            return concat("rank ", rank, " has ", output[i], " at element ", i, ", not ", wanted);
    }
    return {};
}

}  // namespace pccl::comm::testing
