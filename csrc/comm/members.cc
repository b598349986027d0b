#include "csrc/comm/members.h"

#include <algorithm>
#include <utility>

namespace pccl::comm {

CommunicatorOptions of_members(CommunicatorOptions options, const std::vector<Rank>& members) {
    options.size = static_cast<int>(members.size());
    options.rank = static_cast<Rank>(std::ranges::find(members, options.rank) - members.begin());
    if (options.global_ranks.empty()) return options;
    std::vector<std::uint64_t> global;
    global.reserve(members.size());
    for (const Rank rank : members)
        global.push_back(options.global_ranks[static_cast<std::size_t>(rank)]);
    options.global_ranks = std::move(global);
    return options;
}

}  // namespace pccl::comm
