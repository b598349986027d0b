// Links of a phase, as they are often wanted.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "csrc/base/export.h"
#include "csrc/cluster/model/description.h"

namespace pccl::cluster {

/// Of all phases of a cluster.
constexpr std::size_t kMostLinks = std::size_t{1} << 20U;

/// From each rank to the next, and from the last to rank 0; none for one rank.
[[nodiscard]] PCCL_API std::vector<RankLink> ring_of(int ranks);
/// Each link, and behind it its way back, which takes the same two ports.
[[nodiscard]] PCCL_API std::vector<RankLink> both_ways(const std::vector<RankLink>& links);
/// "0 -> 1, 1 -> 0"; "none".
[[nodiscard]] PCCL_API std::string to_string(const std::vector<RankLink>& links);

}  // namespace pccl::cluster
