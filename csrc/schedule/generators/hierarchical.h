// SPDX-License-Identifier: Apache-2.0

// Host-aware collectives: ranks of a host exchange directly, and each byte crosses between hosts
// once.
#pragma once

#include <vector>

#include "csrc/schedule/source.h"

namespace pccl::schedule {

/// Returns "hierarchical" all_gather, reduce_scatter and all_reduce for hosts with these numbers of
/// ranks. The ranks of a host are consecutive positions if the source is laid along an order.
/// Requires at least two hosts with at least one rank each; returns nothing if each host has one
/// rank.
[[nodiscard]] PCCL_API std::vector<SourcePtr> hierarchical(const std::vector<int>& ranks_by_host);

}  // namespace pccl::schedule
