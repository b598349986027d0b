// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/group/helper_limits.h"

#include <algorithm>

#include "csrc/base/text/text.h"
#include "csrc/bootstrap/locality.h"

namespace pccl::comm {
namespace {

std::string counted(int number, std::string_view noun) {
    return concat(number, " ", noun, number == 1 ? "" : "s");
}

std::string described(std::string_view purpose, const HelperLimit& limit) {
    const std::string threads =
        limit.most == 0 ? "no helper threads" : "up to " + counted(limit.most, "helper thread");
    return concat(purpose, ": ", threads, ", as ", limit.why);
}

}  // namespace

std::vector<std::string> HelperLimits::describe() const {
    std::vector<std::string> lines;
    if (copies) lines.push_back(described("copies in shared memory", *copies));
    lines.push_back(described("transfers over links", transfers));
    return lines;
}

HelperLimit helper_limit(std::string_view setting, const std::optional<int>& wanted,
                         const bootstrap::Roster& roster, Rank self,
                         const transport::Crowd& crowd) {
    if (wanted) return {*wanted, concat(setting, " is ", *wanted)};
    const int beside = bootstrap::ranks_beside(roster, self);
    const int all = std::max(static_cast<int>(crowd.processes), beside);
    const int threads = bootstrap::core_share(roster, self) * beside / all;
    const int cores = roster.endpoints[static_cast<std::size_t>(self)].cores;
    const int sharers = bootstrap::core_sharers(roster, self) * all / beside;
    const std::string share = sharers == 1
                                  ? concat("this rank has ", counted(cores, "core"))
                                  : concat(sharers, " ranks share ", counted(cores, "core"));
    return {std::max(threads - 1, 0), share};
}

}  // namespace pccl::comm
