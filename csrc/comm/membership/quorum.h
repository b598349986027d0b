// How many ranks of a group may go on without the others.
#pragma once

#include <optional>
#include <span>

#include "csrc/base/status.h"

namespace pccl::comm {

/// Whether those who stay, in order, may go on as the group of `size` ranks: kUnavailable, naming
/// who is missing, unless they are `least` at least or, where that is not given, more than half of
/// it, or half of it with its rank 0. Of two sides of a group that falls apart, one may.
[[nodiscard]] PCCL_API Status check_quorum(int size, std::span<const Rank> staying,
                                           std::optional<int> least);

}  // namespace pccl::comm
