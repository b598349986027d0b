// SPDX-License-Identifier: Apache-2.0

// Selectors of groups, and their choices.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/comm/selection/selector.h"
#include "tests/cpp/schedule/catalogue.h"

namespace pccl::comm {

inline constexpr std::size_t kBuffer = 1 * kMiB;

inline Selector selector_of(Rank rank, int ranks, std::size_t buffer_bytes,
                            SelectionPreferences preferences = {}) {
    const auto parts = static_cast<std::size_t>(ranks);
    return {rank,
            {.reach = {.ranks = ranks,
                       .is_on_one_host = true,
                       .shares_memory = true,
                       .most_on_a_host = ranks},
             .segment = costs::ShmShape{.ranks = ranks,
                                        .buffer_bytes = buffer_bytes,
                                        .part_bytes = buffer_bytes / parts,
                                        .reads_directly = false,
                                        .ranks_on_core = 1},
             .layout = *bootstrap::Layout::make(ranks, "")},
            std::move(preferences)};
}

/// Of one block of `count` elements on each side, or as many as there are ranks.
inline Decision decision_of(Selector& selector, Collective call, int ranks, std::size_t count) {
    using schedule::Buffer;
    const auto blocks = [&](Buffer buffer) {
        const auto number = static_cast<std::size_t>(schedule::blocks(call.kind, buffer, ranks));
        return std::vector<Block>(number, Block{nullptr, count});
    };
    const auto inputs = blocks(Buffer::kInput);
    const auto outputs = blocks(Buffer::kOutput);
    call.inputs = inputs;
    call.outputs = outputs;
    const auto decision = selector.choose(call);
    EXPECT_TRUE(decision.is_ok()) << decision.status().to_string();
    return decision.is_ok() ? **decision : Decision{};
}

/// Of bytes.
inline Decision decision_of(Selector& selector, CollectiveKind kind, int ranks, std::size_t count) {
    return decision_of(selector, Collective{.kind = kind, .type = DataType::kUint8}, ranks, count);
}

inline std::string_view chosen_of(const std::vector<Prediction>& ways) {
    const auto chosen = std::ranges::find_if(ways, &Prediction::is_chosen);
    return chosen == ways.end() ? std::string_view() : chosen->algorithm();
}

/// What ranks choose over sockets of one machine whose costs were measured.
inline std::string chosen_over_sockets(int ranks, CollectiveKind kind, std::size_t bytes,
                                       int ranks_on_core = 1) {
    const auto costs =
        costs::MachineCosts::parse("tcp_round 5.04\ntcp_message 3.863\ntcp_byte 0.2616\nwake 17\n")
            .value();
    Selector selector(
        0,
        {.reach = {.ranks = ranks, .is_on_one_host = true, .ranks_on_core = ranks_on_core},
         .segment = {},
         .layout = *bootstrap::Layout::make(ranks, "")},
        {.costs = costs});
    return std::string(chosen_of(selector.explain(kind, bytes).value()));
}

}  // namespace pccl::comm
