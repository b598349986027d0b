// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/members.h"

#include <algorithm>
#include <utility>

#include "csrc/comm/phase/phase_network.h"

namespace pccl::comm {

CommunicatorOptions of_members(CommunicatorOptions options, const std::vector<Rank>& members) {
    options.size = static_cast<int>(members.size());
    options.rank = static_cast<Rank>(std::ranges::find(members, options.rank) - members.begin());
    if (options.network_ranks.empty()) {
        options.network_ranks = members;
    } else {
        const std::vector<Rank> all = std::move(options.network_ranks);
        options.network_ranks.clear();
        for (const Rank rank : members)
            options.network_ranks.push_back(all[static_cast<std::size_t>(rank)]);
    }
    if (options.global_ranks.empty()) return options;
    std::vector<std::uint64_t> global;
    global.reserve(members.size());
    for (const Rank rank : members)
        global.push_back(options.global_ranks[static_cast<std::size_t>(rank)]);
    options.global_ranks = std::move(global);
    return options;
}

Status join_network(const CommunicatorOptions& options, const std::shared_ptr<PhasedGroup>& group) {
    if (options.network == nullptr) return Status::ok();
    std::vector<Rank> ranks = options.network_ranks;
    for (Rank rank = 0; options.network_ranks.empty() && rank < options.size; ++rank)
        ranks.push_back(rank);
    return options.network->join(group, std::move(ranks), options.switches_phases);
}

}  // namespace pccl::comm
