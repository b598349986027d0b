// SPDX-License-Identifier: Apache-2.0

// Common sets of links for phases.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <pccl/export.h>
#include "csrc/cluster/model/description.h"

namespace pccl::cluster {

/// Limit for all phases of a cluster.
constexpr std::size_t kMostLinks = std::size_t{1} << 20U;

/// Returns the links from each rank to the next, and from the last to rank 0; none for one rank.
[[nodiscard]] PCCL_API std::vector<RankLink> ring_of(int ranks);
/// Returns each link followed by its reverse, which uses the same two ports.
[[nodiscard]] PCCL_API std::vector<RankLink> both_ways(const std::vector<RankLink>& links);
/// Returns "0 -> 1, 1 -> 0", or "none".
[[nodiscard]] PCCL_API std::string to_string(const std::vector<RankLink>& links);

}  // namespace pccl::cluster
