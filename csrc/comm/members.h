// What a group that is made out of another one takes over from it.
#pragma once

#include <vector>

#include "csrc/comm/options.h"

namespace pccl::comm {

/// `options` of a group, as they are for the group of its ranks `members`, this one among them, in
/// that order.
[[nodiscard]] CommunicatorOptions of_members(CommunicatorOptions options,
                                             const std::vector<Rank>& members);

}  // namespace pccl::comm
