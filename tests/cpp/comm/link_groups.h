// SPDX-License-Identifier: Apache-2.0

// Groups that have links alone, and the decisions of their ranks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/comm/selection/selector.h"
#include "csrc/costs/model/link_model.h"
#include "tests/cpp/schedule/catalogue.h"

namespace pccl::comm {

using schedule::Buffer;
using schedule::SourcePtr;
using transport::TransportKind;

enum class LinkReach { kSharedMemory, kSockets, kBoth };

/// A group that has links alone.
struct LinkGroup {
    bootstrap::Roster roster;
    std::shared_ptr<const bootstrap::Layout> layout;
};

/// All ranks on one host, each on its own, or half of them on each of two.
inline LinkGroup group_of(int ranks, LinkReach reach) {
    bootstrap::Roster roster;
    for (Rank rank = 0; rank < ranks; ++rank) {
        bootstrap::Endpoint& endpoint = roster.endpoints.emplace_back();
        endpoint.rank = rank;
        const int host =
            reach == LinkReach::kSockets ? rank : reach == LinkReach::kBoth && rank < ranks / 2;
        endpoint.machine = endpoint.address.control.host = concat("node", host);
        endpoint.address.links[TransportKind::kTcp] = {"10.0.0.1:1"};
        if (reach != LinkReach::kSockets) endpoint.address.links[TransportKind::kShm] = {"unix:@x"};
    }
    auto layout = bootstrap::Layout::make(roster).value();
    return {std::move(roster), std::move(layout)};
}

/// One side's blocks of a call that nobody runs.
inline std::vector<Block> missing_blocks(CollectiveKind kind, Buffer side, int ranks,
                                         std::size_t count) {
    const auto number = static_cast<std::size_t>(schedule::blocks(kind, side, ranks));
    return std::vector<Block>(number, Block{nullptr, count});
}

/// A rank's decision where the user wants `source`.
inline Result<Decision> link_decision_of(const LinkGroup& group, Rank rank, const SourcePtr& source,
                                         DataType type, std::size_t count) {
    const int ranks = static_cast<int>(group.roster.endpoints.size());
    const std::string wanted = concat(schedule::to_string(source->kind), "=", source->name);
    Selector selector(group.roster, {.rank = rank, .layout = group.layout},
                      {.wanted = wanted, .tuning = {}, .costs = {}});
    const auto inputs = missing_blocks(source->kind, Buffer::kInput, ranks, count);
    const auto outputs = missing_blocks(source->kind, Buffer::kOutput, ranks, count);
    PCCL_ASSIGN_OR_RETURN(
        const Decision* decision,
        selector.choose(
            {.kind = source->kind, .type = type, .inputs = inputs, .outputs = outputs}));
    return *decision;
}

/// All that do not send each block on its own.
inline std::vector<SourcePtr> sources() {
    std::vector<SourcePtr> sources = schedule::testing::all_sources();
    std::erase_if(sources, [](const SourcePtr& source) {
        return is_per_pair(source->kind) && source->takes_uneven;
    });
    return sources;
}

inline bool gathers_chunks(const SourcePtr& source) {
    return source->name == "recursive_doubling" || source->name == "recursive_halving" ||
           source->name == "bruck" || source->name == "pat" || source->name == "swing" ||
           (source->name == "binomial" && is_per_pair(source->kind));
}

}  // namespace pccl::comm
