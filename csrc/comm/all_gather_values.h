// SPDX-License-Identifier: Apache-2.0

// Gathers one value from every rank, so that all ranks take the same decision.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "csrc/collective/collective.h"

namespace pccl::comm {

/// Returns the values of all `ranks`, indexed by rank. `run` runs a collective of the group.
template <typename Value, typename Run>
    requires std::is_trivially_copyable_v<Value>
Result<std::vector<Value>> all_gather_values(int ranks, Value own, Run run) {
    std::vector<Value> values(static_cast<std::size_t>(ranks));
    const std::array<Block, 1> input{{{reinterpret_cast<std::byte*>(&own), sizeof own}}};
    std::vector<Block> outputs;
    outputs.reserve(values.size());
    for (Value& value : values)
        outputs.push_back({reinterpret_cast<std::byte*>(&value), sizeof value});
    PCCL_TRY(run(Collective{.kind = CollectiveKind::kAllGather,
                            .type = DataType::kUint8,
                            .inputs = input,
                            .outputs = outputs}));
    return values;
}

template <typename Value, typename Test>
std::vector<Rank> ranks_where(const std::vector<Value>& values, Test test) {
    std::vector<Rank> ranks;
    for (std::size_t rank = 0; rank < values.size(); ++rank)
        if (test(values[rank])) ranks.push_back(static_cast<Rank>(rank));
    return ranks;
}

/// Fixed-size text in a trivially copyable value; longer text is truncated.
template <std::size_t Size>
struct ShortText {
    ShortText() = default;
    explicit ShortText(const std::string& text) {
        std::memcpy(characters.data(), text.data(), std::min(text.size(), Size - 1));
    }
    /// Returns the characters before the first 0. A value from a peer may contain no 0.
    [[nodiscard]] std::string text() const {
        return {characters.data(), ::strnlen(characters.data(), Size)};
    }
    friend bool operator==(const ShortText&, const ShortText&) = default;

    std::array<char, Size> characters{};
};

}  // namespace pccl::comm
