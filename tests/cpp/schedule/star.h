// SPDX-License-Identifier: Apache-2.0

// A schedule that the library does not know, made step by step: all ranks send to rank 0, which
// adds up, and sends the result to each.
#pragma once

#include <memory>

#include "csrc/base/assert.h"
#include "csrc/schedule/generators/generators.h"
#include "csrc/schedule/verifier/verified_source.h"

namespace pccl::schedule::testing {

inline constexpr Slice kWholeInput{Buffer::kInput, 0, 1};
inline constexpr Slice kWholeOutput{Buffer::kOutput, 0, 1};

inline Program hub_of_star(int ranks) {
    Lane lane{
        {.action = Action::kRecvReduce, .src = kWholeInput, .dst = kWholeOutput, .from = {1, 0}}};
    for (Rank peer = 2; peer < ranks; ++peer)
        lane.push_back({.action = Action::kRecvReduce, .dst = kWholeOutput, .from = {peer, 0}});
    for (Rank peer = 1; peer < ranks; ++peer)
        lane.push_back({.action = Action::kSend, .src = kWholeOutput, .to = {peer, 0}});
    return {.lanes = {lane}};
}

inline Schedule star(int ranks) {
    Schedule made{.name = "star", .shape = {.ranks = ranks, .slots = 1}, .programs = {}};
    made.programs.push_back(hub_of_star(ranks));
    const Lane spoke{{.action = Action::kSend, .src = kWholeInput, .to = {0, 0}},
                     {.action = Action::kRecv, .dst = kWholeOutput, .from = {0, 0}}};
    for (Rank rank = 1; rank < ranks; ++rank) made.programs.push_back({.lanes = {spoke}});
    return made;
}

/// All that is built in, and a star of so many ranks.
inline std::shared_ptr<const Catalogue> with_star(int ranks) {
    auto catalogue = std::make_shared<Catalogue>(*built_in());
    const Status added = catalogue->add(source_of(star(ranks)).value());
    PCCL_ASSERT(added.is_ok());
    return catalogue;
}

}  // namespace pccl::schedule::testing
