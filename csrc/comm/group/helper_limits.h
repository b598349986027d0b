// SPDX-License-Identifier: Apache-2.0

// Maximum numbers of helper threads of a rank in a group's long calls, with the reasons.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/bootstrap/roster.h"
#include "csrc/transport/doorbell.h"

namespace pccl::comm {

struct HelperLimit {
    int most = 0;
    std::string why{};  // "2 ranks share 16 cores"
};

struct HelperLimits {
    std::optional<HelperLimit> copies{};  // nullopt: the group has no shared memory
    HelperLimit transfers{};              // over links

    /// Returns "copies in shared memory: up to 7 helper threads, as 2 ranks share 16 cores" and the
    /// like, one for each purpose.
    [[nodiscard]] std::vector<std::string> describe() const;
};

/// Returns the limit that `setting` requests by `wanted`, if it is set, or else the rank's share of
/// the cores, less its own. Other groups may have more ranks of the job on this host, as `crowd`
/// shows.
[[nodiscard]] HelperLimit helper_limit(std::string_view setting, const std::optional<int>& wanted,
                                       const bootstrap::Roster& roster, Rank self,
                                       const transport::Crowd& crowd);

}  // namespace pccl::comm
