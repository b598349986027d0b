// SPDX-License-Identifier: Apache-2.0

// Quorum: the minimum number of ranks of a group that may continue without the others.
#pragma once

#include <optional>
#include <span>

#include <pccl/status.h>

namespace pccl::comm {

/// Checks that the remaining ranks `staying`, in order, may continue a group of `size` ranks.
/// Returns kUnavailable naming the missing ranks if they are fewer than `least`. Without `least`,
/// more than half of the group must remain, or half with its rank 0. At most one side of a
/// partitioned group may thus continue.
[[nodiscard]] PCCL_API Status check_quorum(int size, std::span<const Rank> staying,
                                           std::optional<int> least);

}  // namespace pccl::comm
