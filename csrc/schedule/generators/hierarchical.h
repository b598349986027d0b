// Collectives that know hosts: inside a host the ranks exchange directly, and between hosts each
// byte goes once.
#pragma once

#include <vector>

#include "csrc/schedule/source.h"

namespace pccl::schedule {

/// "hierarchical" all_gather, reduce_scatter and all_reduce of ranks that lie on hosts, so many on
/// each, one host's ranks after the other's: by positions, where the source is laid along an order.
/// At least two hosts, and a rank on each; none where the hosts have a rank each.
[[nodiscard]] PCCL_API std::vector<SourcePtr> hierarchical(const std::vector<int>& ranks_by_host);

}  // namespace pccl::schedule
